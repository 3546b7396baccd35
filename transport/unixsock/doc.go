// Package unixsock is the kernel's door: a Unix socket that only its owner can reach.
//
// A daemon comes up in this order, and each step needs what the one before returned: EnsurePrivateDir, AcquireLock,
// Listen (or Inherited, for sockets of a service manager), Server.Serve. A client goes Dial, NewConn, access.ClientPrologue.
// A Handler reads and writes its Conn, or has a loop do so by Conn.Link, which costs no goroutine for each.
//
// # What it promises
//
//   - At most one daemon serves a runtime directory. The lock decides; where the lock file was removed, Probe does.
//   - Nothing that is not ours is ever removed, replaced or connected to: not a stranger's socket, not a regular
//     file, not a directory that others can write to. The error says what stands there and what to do.
//   - Who is handed to a Handler is a process of our own user or root, and has passed the prologue (BRIDGE 4.2.5).
//     Every byte after its answer reaches the Handler.
//   - Before that, a connection gets access.AuthTimeout and no more; however many never answer, further ones are
//     served.
//   - Serve returns after every goroutine that it started, and after every Handler has called done.
//
// # What it does not promise
//
//   - A connection that ends before its prologue came, or is sent away in the middle of it (class Unavailable), had
//     nothing run. One that ends later may have had anything run; what did is for the answers to say.
//   - Nothing here knows what a frame means, or what proves who a client is: that is package access's.
package unixsock
