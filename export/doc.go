// Package export delivers the audit log of a kernel to other systems. It is a client of the kernel: it follows the
// audit log from an entry on, and delivers each entry with an id that is unique among all kernels.
//
// # What it promises
//
//   - Every entry that the caller may see is delivered, in order, also if the exporter, the kernel or the receiver is
//     killed: the cursor moves after the receiver has confirmed.
//   - An entry that is delivered again has the same id. A file of lines has no entry twice: its last line is the
//     cursor.
//   - Two exporters never use one cursor, or one file, at the same time.
//   - Memory is bounded. Entries that the receiver has not accepted stay in the kernel's journal.
//
// # What it does not promise
//
//   - That a receiver stores what it has confirmed.
//   - That entries are delivered only once, except to a file: a receiver has to compare their ids.
package export
