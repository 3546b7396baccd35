// Package client talks to a kernel from outside.
//
// Dial finds the kernel of a runtime directory, or starts one, and goes through the prologue. The Client is then used in one
// of two ways: Do sends single messages and matches their answers; Stream copies lines from a reader to the kernel and its
// answers to a writer.
//
// # What it promises
//
//   - Any number of clients that find no daemon start one between them. Who starts it is told when it is ready; the
//     others find it. A Dial that fails leaves no daemon behind that it started (BRIDGE 4.5.2).
//   - A kernel that wants to know who connects is shown a key, the next one where it refuses that, each for that connection
//     alone; a Client that Dial returns is let in. Nothing is signed for a kernel that does not prove to be the one that was
//     met before (BRIDGE 4.2.5).
//   - Whatever Dial returns in the end, it returns within its patience: five seconds unless asked otherwise, not
//     counting the time that whoever holds a key takes to sign.
//   - Do may be called from many goroutines. Messages are sent in the order of the calls, without waiting for answers.
//   - Stream passes on every byte of a frame, in both directions and at the same time, so that neither a kernel that answers
//     before the input ends nor one that waits for it can stall it. A lost answer is an error.
//
// # What it does not promise
//
//   - That a command was not run when its Do returned an error that is no answer (Answered): the connection may have ended
//     between the command and its answer. An idempotency key makes sending it again safe.
package client
