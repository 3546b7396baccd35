// Package client talks to a kernel from outside.
//
// Dial finds the kernel of a runtime directory, or starts one, and runs the prologue. A Client is then used in one of
// two ways: Do sends single messages and matches their answers; Stream copies lines from a reader to the kernel and
// its answers to a writer.
//
// # What it promises
//
//   - Any number of clients that find no daemon start one between them. The client that starts it is told when it is
//     ready; the others find it. A failed Dial leaves no daemon behind (BRIDGE 4.5.2).
//   - A kernel that asks for identification is shown a key, and after a refusal the next one, for that connection only;
//     a Client that Dial returns is logged in. Nothing is signed for a kernel that does not prove to be the known one
//     (BRIDGE 4.2.5).
//   - Dial returns within its patience: five seconds by default, not counting the time that signing takes.
//   - Do may be called from many goroutines. Messages are sent in the order of the calls, without waiting for answers.
//   - Stream passes on every byte of a frame, in both directions concurrently, so that neither a kernel that answers
//     before the input ends nor one that waits for it can block it. A lost answer is an error.
//
// # What it does not promise
//
//   - That a command was not run if its Do returned an error that is no answer (Answered): the connection may have
//     ended between the command and its answer. With an idempotency key it can be sent again.
package client
