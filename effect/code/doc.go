// Package code runs the handlers of syscalls that were registered with their code (PROTOCOL 11).
//
// A handler is TypeScript that exports handler: (input) => output, or an async function. Input and output are JSON
// values. esbuild bundles it and QuickJS runs it, both in a worker: a process of the kernel that is confined like
// hosted programs, has no network and is reused.
//
// # What is promised
//
//   - A handler has no authority: no files, no sockets, no environment, no modules, no timers. It has the language,
//     and a console that writes to the kernel's log, 4 KiB a call.
//   - Each call has a runtime of its own. Changes that a handler makes are not visible to other calls.
//   - Time, memory and output of a call are bounded (Limits). A call that exceeds a bound gets one error; its worker is
//     replaced if it does not stop by itself.
//   - A worker makes one call at a time, so that its end affects no other call. If a worker has ended between two
//     calls, another one makes the call: a handler has no effects that could happen twice.
//   - No worker outlives the kernel.
//
// # What is not
//
//   - Workers are reused: code that escapes from QuickJS could see later calls of the same worker. It would still be
//     confined like a program.
//   - Numbers are JavaScript's: an integer beyond 2^53 loses digits.
package code
