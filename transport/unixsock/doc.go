// Package unixsock provides the kernel's Unix sockets, which only their owner can reach. A daemon calls
// EnsurePrivateDir, AcquireInstanceLock, Listen (or Inherited, for sockets of a service manager) and Server.Serve, in
// this order; each needs the result of the one before. A client calls Dial, NewConn and access.ClientPrologue. A
// Handler reads and writes its Conn, or passes its Conn.Link to a loop, which needs no goroutine for each connection.
//
// # What it promises
//
//   - At most one daemon serves a runtime directory. The lock ensures that; if the lock file was removed, the probe of
//     Listen does.
//   - No other file is ever removed or replaced, and no other process's socket connected to: not another user's socket,
//     not a regular file, not a directory that others can write to. The error names the file and says what to do.
//   - The peer of a Handler is a process of the same user or root, and has passed the prologue (BRIDGE 4.2.5). Every
//     byte after its answer reaches the Handler.
//   - The prologue takes at most access.AuthTimeout. Any number of connections that never answer does not keep others
//     from being served.
//   - Serve returns after every goroutine that it started, and after every Handler has called done.
//
// # What it does not promise
//
//   - Which calls ran on a connection that ended: none if it ended before the prologue or was refused in it (class
//     Unavailable); else the answers tell.
//   - The meaning of frames, and the proof of a client's identity: that is package access.
package unixsock
