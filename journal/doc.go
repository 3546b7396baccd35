// Package journal implements the append-only, hash-chained log from which every other file of pwos can
// be rebuilt.
//
// It is PROTOCOL 7 on disk: segments of NDJSON, one entry a line, each line with the SHA-256 of the
// line before it. A Log has one owner, which appends and writes. Sync makes durable what was
// written before it, many entries with one fsync, on any goroutine. Verify checks a journal without
// a kernel; a Reader walks it, also while it grows.
//
// # How an owner writes
//
// Many entries share one write and one fsync, and only Sync, Rotate and Checkpoint wait for the
// disk. In this order:
//
//	Append        each entry
//	RotateDue     if true: Rotate, while only Append is called; Rotate waits for a running Sync
//	Flush         or FlushFromReserve; may run concurrently with a Sync and a Checkpoint
//	Sync          if a caller waits for entries to be durable, or CheckpointWaits; one at a time
//	CheckpointDue after each Sync, Rotate and Checkpoint. If true: Checkpoint, on another goroutine, one at a time
//
// # Files
//
//	00000000000000000001.ndjson   a segment, named after its first seq; all but the last are complete and synced
//	checkpoints                   signed heads, one a line; only of entries that were synced before
//	head                          the last synced seq and hash, rewritten in place after each fsync, itself unsynced
//	next                          the next segment, if it could not be started; it has no entries
//	anchor                        the last archived entry, and the directory of the archive; signed
//	00000000000000000000.state    the state of all entries up to the anchor's, named after that; the anchor has its SHA-256
//	redactions                    lines that were rewritten, signed, with the entry of the chain that vouches for each
//
// Only the segments have the entries; when older ones are archived, the anchor replaces them. The head mark is a lower bound: it
// is exact after the process is killed; after a power cut it may be older or missing. With it a start can distinguish a write that
// never finished from a loss of acknowledged entries. The lines alone are not enough for that, since nothing in a chain protects
// its last line.
//
// # What it promises
//
//   - Order: entries are on disk in the order of Append, seq counts from 1 without a gap across segments. A crash
//     leaves a prefix of what was appended, never a later entry without an earlier one.
//   - Durability: what Sync covers survives power loss on a file system whose fsync works as documented. The directory
//     is synced before the first entry of a new segment can be covered.
//   - A failed Flush leaves the file unchanged (cut back and synced) and drops the entries that it could not write; the log
//     continues when there is room again. If the cut fails too (ErrUncertain), nothing is written until it succeeds.
//     Only a failed fsync, of a file or of the directory, stops the log permanently (ErrStopped): the operating system
//     may have dropped the data, so no fsync is retried. The next Open writes again what the head mark does not cover.
//   - Descriptors: an open Log needs another one for a short time when it starts a segment, and continues in the old
//     segment while there is none.
//   - Reserve: with Options.ReserveBytes, Flush treats a disk as full while that much can still be written. The reserve
//     is allocated, so no other file can use it, and FlushFromReserve writes to it. It outlives the process.
//   - Open accepts no damage silently. It checks every line of the last segment (and of the one before, if the last has
//     no entry), and the first and last lines of older segments, against each other and against checkpoints and the head
//     mark. Verify and a Reader check the chain of older segments in full. Bytes after the last line end are cut and
//     reported; so is everything from a line with NUL bytes on, because only a block that was allocated and never written
//     has those. Open fails instead if a checkpoint or the head mark says that the entry was synced, with one exception:
//     if the last line is torn and only the head mark covers it, the line is cut, and Cut.Answered reports the loss. Any
//     other damage is a *DamageError.
//   - Archive: the anchor is written when the archive has the segments before it, durable and verified, and they are removed
//     afterwards. If the process ends in between, each entry is in at least one of the directories.
//   - Rewrite: a complete segment is replaced as a whole to change one of its lines, after an entry vouches for the line's
//     old and new hash. In the chain, in checkpoints and for readers it keeps the old hash (Record.Hash). Verify accepts a
//     changed line only if an entry vouches for it, or, in an archive without that entry, a signed redaction. If the file of
//     redactions is lost, Open rebuilds it from the entries.
//   - Shutdown: Close writes and syncs what was appended, then signs a checkpoint of it. No Sync may be running.
//
// # What it does not promise
//
//   - That an entry whose Flush or Sync failed does not exist: it is not in this process's journal after a failed Flush,
//     but after ErrStopped or ErrUncertain the next Open may find it whole.
//   - That damage after the last entry that the head mark and the checkpoints cover is recognized. After a power cut that
//     lost the latest mark, a synced entry that was torn later looks like a write that never finished, and a change of the
//     very last line, which no other line protects, cannot be seen.
//   - That a removed end is noticed from these files alone, if checkpoints and head mark were cut too: that needs a copy of
//     a checkpoint from elsewhere (VerifyOptions.Known).
//   - A reserve if the file system cannot allocate ahead, or does not keep what it allocated for the file's next bytes.
//   - Secrecy, or protection from a process that may write the files while the log is open.
package journal
