// Package actors schedules the kernel. One goroutine, the loop, runs all actors; slow work runs on goroutines that report to an
// actor.
//
// This package does not know what a syscall means, except in rows.go, which has what an actor does with a particular one. A
// connection's actor decodes a frame and sends it to the actor of its domain. There it passes the gate (kernel.Gate), and the
// handler of its row decides and applies it. The domain's actor forwards it to the audit actor, which appends it to the journal
// and returns the answer when nothing that it reveals can be lost. No actor blocks in its handler.
//
// The files by role. With few exceptions, a file uses only those before it:
//
//   - the loop: loop, clock, account, link, hosting, kernel
//   - a domain: batch, domain, waiting, gate, reading, rebuild, frames, saga, effects, decide
//   - a connection: connection, rows, follow, providers, input, serve
//   - the commit: audit, segment, replace, snapshots, auditfailure, quorum, commit, own
//   - agents: agentnote, agent, agents
//   - start, which makes and ends all of it
//
// # What it promises
//
//   - Frames of a connection take effect in order, and answers leave in that order. Frames for one domain are pipelined; a
//     frame for another domain waits until the earlier ones are answered.
//   - Each frame that needs an answer gets exactly one, also if its handler panics or its domain fails.
//   - A command's answer leaves only when its entry is on disk, a query's when its own entry is written and those of the
//     commands that it may have seen are on disk.
//   - With a quorum (Config.Quorum) the same holds for the disks of a majority, for a limited time: after that the answer is that
//     the outcome is unknown, and commands are refused before they are written. What the operator needs to end agents, and to
//     look at the kernel, is then answered from the kernel's own disk, and the answer says so.
//   - A parked call delays no other call, and is cancelled when its connection closes or the kernel ends.
//   - A call that waits at the gate delays only later frames of its connection. It passes the gate again when its question is
//     answered (Kernel.Answered), and is refused if that takes too long.
//   - Events of a subscription are pushed until it ends, and only as fast as the peer reads: the next ones are requested when
//     all earlier ones are written. A push leaves when an answer would. A subscription ends with an event that says so, or
//     with its connection; its end is journaled then, or as soon as the journal can be written.
//   - The effect of a call outside the kernel starts when the call's entry is on disk, and the call is answered when it is
//     done. A program's channel is served when its start is on disk; its end is journaled when none of its processes is left
//     and, unless it was told to end, all its frames are handled. StopPrograms leaves no program.
//   - A call is one row of Audit.Log and is counted once, with the verdict that its caller got: for a call with an effect, that
//     is the entry of its end. The metrics are computed from the journal, so a restart gives the same numbers.
//   - A connection has at most its window in flight (128 frames, 256 KiB of input, or one larger frame). It reads nothing while
//     the window is full, so a client that does not read is not read from (backpressure).
//   - A connection ends when every answer is flushed or the link is broken, and needs no goroutine until then. Close returns
//     when every goroutine has ended.
//
// # What it does not promise
//
//   - Fairness beyond the window: a connection has no more than that in flight, and continues in the next turn if it has more
//     to read.
//   - A bound on a turn: a few calls take milliseconds, and all others wait for them (docs/architecture.md, Known long turns).
package actors
