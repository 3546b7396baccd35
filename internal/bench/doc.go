// Package bench measures what the kernel costs beyond what its socket costs anyway.
//
// A workload is driven against the kernel and against a line echo, a server that sends every line back as it came, in a
// process of its own over the same kind of socket. Both get the same load from the same code on the same machine in alternating
// rounds, so that what disturbs one disturbs the other too. The load is a closed loop: a connection sends the next message when
// an answer has come, with a fixed number of them outstanding. Every answer is checked: that it is the one to its message, and
// no error.
package bench
