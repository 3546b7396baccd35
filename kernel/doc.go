// Package kernel says what a syscall is to the state machines that give it meaning.
//
// # The contract of a Domain
//
// A domain's state changes in two steps. Decide looks at the state and at the call, and computes the whole answer;
// it changes nothing and may fail. Apply then changes the state by a pure function of a decided call; it cannot fail.
// Neither starts a goroutine, reads a clock or does I/O: what time it is, who asks and on whose behalf comes with the
// call. So a domain can be rebuilt by applying its decided calls again, in their order.
//
// A domain binds each of its rows of the syscall table to a [Handler], whose functions have the row's types: see [Bind]. Before a
// domain decides a call, the call passes the [Gate]. What a handler wants beside its reply (steps, a wait, work outside the
// kernel) it asks of the [Call].
//
// # What it promises
//
//   - The calls of one domain are decided one at a time, in the order in which they came in.
//   - A call that fails, or whose Decide panics, changes nothing.
//
// # What it does not promise
//
//   - An order between calls of different domains: a caller that needs one waits for the first answer.
package kernel
