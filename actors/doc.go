// Package actors is the concurrency of the kernel: who runs when, on whose behalf, in which order.
//
// Nothing here knows what a syscall means. A frame goes one way: the reader of its connection decodes it, the
// connection's actor sends it to the actor of its domain, that forwards it decided to the audit log, and the answer comes
// back from there once what it reveals cannot be lost. Nobody waits for anybody inside a handler.
//
// # What it promises
//
//   - Frames of a connection take effect in their order, and answers leave in that order. Frames for one domain are
//     pipelined; a frame for another domain waits until those before it are answered.
//   - Each frame that calls for an answer gets exactly one, also when its syscall panics or its domain dies.
//   - A command's answer leaves only when its entry is on disk, a query's when its own is written and those of the commands
//     that it may have seen are on disk.
//   - A call that waits holds up nobody else, and stops waiting when its connection is gone or the kernel ends.
//   - A call that waits at the gate holds up the frames behind it on its connection, and nobody else. It passes the gate again when
//     its question is answered (Kernel.Answered), and is refused where that takes too long.
//   - What a connection subscribed to is pushed on it as long as it lasts, and not past what its peer reads: the next is
//     asked for when all before is written. A push leaves when its answer would. A subscription ends with a word, or with
//     its connection, and what it had is given back then, or as soon as that can be journaled.
//   - What a call needs done outside the kernel is begun once its entry is on disk, and the call is answered once it is done.
//     A program's channel is served once its start is on disk; its end is journaled once nothing of it is left and, unless it was
//     told to end, all that it said was heard. StopPrograms leaves no program.
//   - A call is one row of Audit.Log and is counted once, with the verdict that its caller was given: of a call with an effect
//     that is the end's entry. The metrics are a fold over the journal, so that a restart comes to the same numbers.
//   - A connection holds at most its window (128 frames, 256 KiB of input, or one larger frame). Its reader stops when
//     the window is full, so a client that does not read is not read from, and bothers nobody else.
//   - Serve returns when every answer is flushed or the link is broken; Close returns when every goroutine has ended.
//
// # What it does not promise
//
//   - Fairness beyond the mailboxes: a domain takes batches of at most 64 frames in the order in which they arrive.
package actors
