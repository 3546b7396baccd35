// Package store keeps the projections of the journal on SQLite.
//
// All that is in the file can be made anew from the journal, so losing it costs a replay and never data. It holds two
// projections:
//
//   - Snapshots: the state of a part of the kernel as it was at one entry of the journal. A restart loads it and replays
//     only what came after.
//   - The audit index: which blocks of entries can hold one with a certain process, type, correlation or time; the
//     end of an effect counts as the call that it ends. A question to the audit log reads those blocks instead of the whole
//     journal.
//
// # Files
//
//	<path>       the database, mode 0600
//	<path>-wal   its write-ahead log, empty after Close
//	<path>-shm   the index of that log; gone, as the log is, after Close
//
// Nothing is ever left beside these three. The database is locked with flock(2) for as long as a Store has it open.
//
// # What it promises
//
//   - A snapshot is the old one or the new one, never a mixture, whenever the process or the machine dies. What Load
//     hands on is what was saved: every part of it is covered by a SHA-256, checked before its chunks are handed on.
//   - Ranges never leaves out an entry that fits the filter, however the index stands: what is not indexed is always part
//     of the answer. The index carries checksums of its own; where one does not fit, the answer is ErrDamaged, never a
//     shorter one.
//   - A file that is not a database, is damaged where Open looks, or has another format, is made anew. Snapshots or an
//     index of another journal, or of entries that the journal does not have, are dropped. Options.Trouble is told of each.
//   - Memory does not grow with what is stored: saving and loading take a few times the longest chunk, or 256 KiB where
//     that is more, and the index some hundred KiB.
//   - No call panics on a full disk, and none blocks the kernel: it returns an error, what was there before is still
//     there, and a later call may succeed.
//
// # What it does not promise
//
//   - That what was saved last survives power loss: commits are not synced one by one (synchronous=NORMAL), so the file
//     may fall back to the state of a moment before. It falls back as a whole.
//   - Protection from a process that alters the file on purpose: the checksums find accidents, not forgers.
package store
