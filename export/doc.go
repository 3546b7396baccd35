// Package export takes the record of a kernel to other systems. It is a client of the kernel: it follows the audit log
// from an entry on, and hands each entry on with an id that no other entry of any kernel has.
//
// # What it promises
//
//   - Every entry that the caller may see is delivered, in the order of the record, whenever the exporter, the kernel or
//     the receiver is killed: the cursor is moved after the receiver has confirmed.
//   - An entry that is delivered again has the same id. To a file of lines nothing is written twice: the file's own last
//     line is the cursor.
//   - Two exporters never use one cursor, or one file, at the same time.
//   - Memory is bounded. What the receiver does not take stays in the kernel's journal.
//
// # What it does not promise
//
//   - That a receiver keeps what it has confirmed.
//   - That entries are delivered once to anything but a file: a receiver compares their ids.
package export
