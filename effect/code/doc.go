// Package code runs the handlers of syscalls that were registered with their code (PROTOCOL 11).
//
// A handler is TypeScript that exports handler: (input) => output, or an async function. Input and output are JSON values. It is
// bundled by esbuild and runs on QuickJS, both in a process of the kernel's own: a worker, which is confined as hosted programs are,
// has no network and is kept warm.
//
// # What is promised
//
//   - A handler has no authority: no files, no sockets, no environment, no modules, no timers. It has the language,
//     and a console that writes to the kernel's log, 4 KiB a call.
//   - Each call has a runtime of its own. Nothing that a handler changes is seen by another call.
//   - Time, memory and output of a call are bounded (Limits). A call that is over a bound gets one error; its worker
//     is replaced if it does not stop by itself.
//   - A worker does one call at a time, so that one that ends takes no other call with it. A worker that has ended
//     between two calls is replaced, and the call is made on another: a handler has no effects that could be had
//     twice.
//   - No worker outlives the kernel.
//
// # What is not
//
//   - Workers are reused: code that broke out of QuickJS could see the calls that come after it to the same worker.
//     It would still be confined as a program is.
//   - Numbers are JavaScript's: an integer beyond 2^53 loses digits.
package code
