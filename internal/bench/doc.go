// Package bench measures what the kernel costs beyond what its socket costs anyway.
//
// Each workload runs against the kernel and against an echo server, a process that sends every line back unchanged over the
// same kind of socket. Both get the same load from the same code on the same machine, in alternating rounds, so that a
// disturbance affects both. The load is a closed loop: a connection keeps a fixed number of messages outstanding, and sends
// the next one when an answer has come. Every answer is checked: it must be the one to its message, and no error.
package bench
