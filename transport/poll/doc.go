// Package poll waits for many non-blocking streams on one goroutine. A loop makes a Poller, Adds its streams, and calls
// Wait repeatedly; Wait calls the notify function of each ready stream. Events are edge-triggered. In is reported when
// input arrives after a Read that left nothing, not as long as there is input: a loop that pauses reading does not
// spin, and has to record that it may read. Out is reported once after a Write that did not write everything.
//
// # What it promises
//
//   - Input, the end of input, and a hang-up are reported whether or not the loop reads in between.
//   - A poller with idle streams does not wake. A Wake while the loop runs, or after another Wake, makes no system
//     call.
//   - After a stream's Close, on any goroutine, no Read or Write uses its descriptor, which may belong to another file.
//     After a Close on the goroutine of Wait, notify is not called again.
//   - Waiting, reading and writing allocate nothing with New on Linux.
//
// # What it does not promise
//
//   - Progress after an event: Read may return ErrAgain, and Write may write nothing.
//   - Prompt reading behind passed descriptors or urgent bytes: what the peer sent after them may be read only when it
//     sends more.
//   - Precision of timeouts: they are rounded up to milliseconds.
package poll
