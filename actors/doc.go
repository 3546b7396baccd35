// Package actors decides what in the kernel runs when. One goroutine, the loop, runs all actors; what takes long runs on goroutines
// that post the outcome.
//
// Nothing here knows what a syscall means. A connection's actor decodes a frame and sends it to the actor of its domain. There it
// passes the gate (kernel.Gate), and the handler of its row decides and applies it. The domain's actor forwards it to the audit
// actor, which appends it to the journal and returns the answer once nothing that it reveals can be lost. No actor waits in its
// handler.
//
// # What it promises
//
//   - Frames of a connection take effect in their order, and answers leave in that order. Frames for one domain are
//     pipelined; a frame for another domain waits until those before it are answered.
//   - Each frame that calls for an answer gets exactly one, also when its handler panics or its domain fails.
//   - A command's answer leaves only when its entry is on disk, a query's when its own is written and those of the
//     commands that it may have seen are on disk.
//   - With a quorum (Config.Quorum) the same holds for the disks of a majority, within a bounded time: after that the caller is told
//     that the outcome is unknown, and commands are refused before they are written. What the operator needs to end agents, and to look at
//     the kernel, is then answered from its own disk and marked so.
//   - A parked call delays no other call, and is given up when its connection closes or the kernel ends.
//   - A call that waits at the gate delays the frames behind it on its connection, and no others. It passes the gate
//     again when its question is answered (Kernel.Answered), and is refused if that takes too long.
//   - What a connection subscribed to is pushed on it as long as it lasts, and not past what its peer reads: the next
//     is asked for when all before is written. A push leaves when its answer would. A subscription ends with an event
//     that says so, or with its connection; its end is journaled then, or as soon as the journal can be written.
//   - What a call needs done outside the kernel is begun once its entry is on disk, and the call is answered once it
//     is done. A program's channel is served once its start is on disk; its end is journaled once nothing of it is
//     left and, unless it was told to end, all that it said was heard. StopPrograms leaves no program.
//   - A call is one row of Audit.Log and is counted once, with the verdict that its caller was given: of a call with
//     an effect that is the end's entry. The metrics are a fold over the journal, so that a restart comes to the same
//     numbers.
//   - A connection holds at most its window (128 frames, 256 KiB of input, or one larger frame). It takes in nothing
//     when the window is full, so a client that does not read is not read from.
//   - A connection ends when every answer is flushed or the link is broken, and costs no goroutine until then; Close
//     returns when every goroutine has ended.
//
// # What it does not promise
//
//   - Fairness beyond the window: a connection has no more in flight than that, and goes on in the next turn if it
//     has more to read.
//   - A bound on a turn: a few calls take milliseconds, and everybody waits for them (docs/architecture.md, Known
//     long turns).
package actors
