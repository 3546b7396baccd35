// Package load measures the cost of the kernel beyond that of its socket.
//
// Each workload runs against the kernel and against an echo server, a process that sends every line back unchanged over the
// same kind of socket. Both get the same load from the same code on the same machine, in alternating rounds, so that a
// disturbance affects both. The load is a closed loop: a connection keeps a fixed number of messages in flight, and sends
// the next one when an answer has arrived. Every answer is checked: it must answer its message, without an error.
package load
