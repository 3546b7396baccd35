// Package poll waits on one goroutine for many streams that never make it wait themselves.
//
// A loop makes a Poller, Adds its streams, and calls Wait again and again; Wait calls the tell function of each stream that
// is ready. Events are edges: In is told when something has arrived since Read last said that nothing is left, not as long as
// it is there, so a loop that does not want to read does not spin, and has to remember that it may. Out is told
// once after a Write that did not take everything.
//
// # What it promises
//
//   - What arrives, the end of input, and a hang-up are told, whether or not the loop reads in between.
//   - A poller with idle streams does not wake. A Wake while the loop runs, or one more while it is being woken,
//     makes no system call.
//   - A stream's Close, from whatever goroutine, never lets a Read or Write reach a descriptor that is somebody
//     else's by then. After a Close on the goroutine of Wait, tell is not called again.
//   - Waiting, reading and writing allocate nothing with New on Linux.
//
// # What it does not promise
//
//   - An event says that something may have become possible: Read may find ErrAgain, Write may take nothing.
//   - A peer that passes descriptors, or marks bytes as urgent, may have what it sent behind them read only once it
//     sends more.
//   - Timeouts are rounded up to milliseconds.
package poll
