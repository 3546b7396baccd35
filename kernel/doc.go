// Package kernel defines what a syscall means to the state machines that implement it.
//
// # The contract of a Domain
//
// A domain's state changes in two steps. Decide looks at the state and the call, and computes the whole answer; it
// changes nothing and may fail. Apply then changes the state by a pure function of a decided call; it cannot fail.
// Neither starts a goroutine, reads a clock or does I/O: the time and the caller come with the call. So a domain is
// rebuilt by applying its decided calls again, in order.
//
// A domain binds each of its rows of the syscall table to a [Handler], whose functions have the row's types: see
// [Bind]. Before a domain decides a call, the call passes the [Gate]. What a handler needs besides its reply (steps,
// a wait, work outside the kernel) it asks of the [Call].
//
// # What it promises
//
//   - The calls of one domain are decided one at a time, in the order in which they arrive.
//   - A call that fails, or whose Decide panics, changes nothing.
//
// # What it does not promise
//
//   - An order between calls of different domains: a caller that needs one waits for the first answer.
package kernel
