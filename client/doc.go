// Package client talks to a kernel from outside.
//
// Dial finds the kernel of a runtime directory, or starts one, and runs the prologue. A Client is then used in one of
// two ways: Do sends single messages and matches their answers; Stream copies lines from a reader to the kernel and
// its answers to a writer.
//
// # What it promises
//
//   - Clients that find no daemon at the same time start exactly one. The client that starts it waits until it is
//     ready; the others connect to it. A failed Dial leaves no daemon behind (BRIDGE 4.5.2).
//   - A Client that Dial returns is logged in. If the kernel asks for identification, Dial offers one key after the
//     other, each on a connection of its own. It signs nothing for a kernel that does not prove to be the known one
//     (BRIDGE 4.2.5).
//   - Dial returns within its patience: five seconds by default, not counting the time that signing takes.
//   - Do may be called from many goroutines. Messages are sent in the order of the calls, without waiting for answers.
//   - Stream copies frames unchanged, in both directions concurrently: a kernel that sends answers before it reads the
//     rest of the input does not block it. A missing answer is an error.
//
// # What it does not promise
//
//   - That a command did not run if its Do returned an error that is not the kernel's answer (Answered): the connection
//     may have ended between the command and its answer. A command with an idempotency key can be sent again.
package client
