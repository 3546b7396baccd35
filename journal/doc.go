// Package journal keeps the append-only, hash-chained log from which every other file of pwos can
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
//	RotateDue     if so: Rotate, while nothing but Append is called; no Sync may be running, or Rotate waits for it
//	Flush         or FlushFromReserve; may run beside a Sync and a Checkpoint
//	Sync          if a caller waits for entries to be durable, or CheckpointWaits; one at a time
//	CheckpointDue after each Sync, Rotate and Checkpoint. If so: Checkpoint, on another goroutine, one at a time
//
// # Files
//
//	00000000000000000001.ndjson   a segment, named after its first seq; all but the last are complete and synced
//	checkpoints                   signed heads, one a line; only of entries that were synced before
//	head                          the last synced seq and hash, rewritten in place after each fsync, itself unsynced
//	next                          the next segment, if it could not be begun; nothing in it counts
//	anchor                        what was archived: its last entry, and where it is; signed
//	00000000000000000000.state    the state of all entries up to the anchor's, named after that; the anchor has its SHA-256
//	redactions                    lines that were rewritten, signed, with the entry of the chain that vouches for each
//
// Only the segments hold the record, and once older ones are archived the anchor stands in for them. The head mark is a lower bound: a process that is killed leaves it exact, a power
// cut may leave an older one or none. It lets a start tell a write that never finished from a loss of what had been
// promised, which the lines alone cannot do: nothing in a chain protects its own last line.
//
// # What it promises
//
//   - Order: entries are on disk in the order of Append, seq counts from 1 without a gap across segments. A crash
//     leaves a prefix of what was appended, never a later entry without an earlier one.
//   - Durability: what Sync says it covers survives power loss on a file system whose fsync tells the truth. The
//     directory is synced before the first entry of a new segment can be covered.
//   - A failed Flush leaves the file as it was before (cut back and synced), drops the entries that it could not
//     write, and the log goes on when there is room again. Where the cut fails as well (ErrUncertain), nothing is
//     written before it has succeeded. A failed fsync, of a file or of the directory, and nothing else stops the log
//     for good (ErrStopped): the kernel of the operating system may have thrown the data away, so no fsync is tried
//     twice. The next Open writes again whatever the head mark does not vouch for.
//   - Descriptors: an open Log needs one more for a moment when it begins a segment, and goes on in the old segment
//     while there is none.
//   - Reserve: with Options.ReserveBytes, Flush takes a disk for full while that much can still be written. It has
//     been allocated, so no other file can take it, and FlushFromReserve writes there. It outlives the process.
//   - Open accepts no damage in silence. It checks every line of the last segment (and of the one before, while the
//     last has no entry), and the joints between older segments: their first and last lines, against each other and
//     against each checkpoint and head mark there. Older segments in full are Verify's business, or a Reader's, which
//     checks the chain as it goes. Bytes after the last line end are cut and reported; so is everything from a line
//     with NUL bytes on, because only a block that was allocated and never written holds those. Either is refused
//     where a checkpoint or the head mark says that the entry had been synced, except for one case: a last line that is
//     torn where the head mark alone vouches for that one entry is cut, and Cut.Answered tells of the loss. Any other
//     damage is a *DamageError.
//   - Archive: the anchor is written when the segments before it are elsewhere, durable and verified, and they are removed
//     after that: whatever ends the process in between, each entry is in one of the directories at least.
//   - Rewrite: the line of a complete segment is replaced with the whole segment, once an entry vouches for its old and new
//     hash. In the chain, in checkpoints and to every reader it keeps the old hash (Record.Hash). Verify accepts a line that
//     an entry vouches for, and no other; of an archive without that entry, one with a signed redaction. If the file of
//     redactions is lost, what the entries say stands in for it, and Open writes it again.
//   - Shutdown: Close writes and syncs what was appended, then signs a checkpoint of it. No Sync may be running then.
//
// # What it does not promise
//
//   - That an entry whose Flush or Sync failed is gone: it is not in this process's journal after a failed Flush, but
//     after ErrStopped or ErrUncertain the next Open may find it whole.
//   - That damage above what the head mark and the checkpoints vouch for is seen for what it is. After a power cut
//     that took the latest mark, a synced entry there that was torn later looks like a write that never finished, and
//     the very last line, which no other line protects, may have been altered without a trace.
//   - That a cut tail is noticed by anybody who has only these files, if checkpoints and head mark were cut with it:
//     that takes a copy of a checkpoint kept elsewhere (VerifyOptions.Known).
//   - A reserve where the file system cannot allocate ahead, or does not keep what it allocated for the file's next
//     bytes.
//   - Secrecy, or protection from a process that may write the files while the log is open.
package journal
