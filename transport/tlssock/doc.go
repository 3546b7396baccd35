// Package tlssock carries the lines of a kernel over TLS, for clients on other machines (PROTOCOL 13).
//
// A daemon calls NewServer and Server.Serve; a client calls Dial, newly for each connection, and access.ClientPrologue.
//
// # What it promises
//
//   - Every Handler's peer has logged in with a key, on this very session: the login is bound to the session's exporter
//     (RFC 9266), so that nobody between both ends can pass it on. There is no listener without an Authenticator.
//   - TLS is 1.3. The certificate is the host key's own; a client looks at the key alone, which the login compares with
//     the known one.
//   - Handshake and prologue take at most access.AuthTimeout together. One address has at most NetworkWaiting
//     connections that have not logged in, all together have MaxWaiting, and those of the address with the most are
//     dropped first. Connections to Unix sockets wait for none of them.
//   - Input that ends without the TLS alert for it is cut short, not ended: its last line is not a frame.
//   - Serve returns after every goroutine that it started.
//
// # What it does not promise
//
//   - That the other end of an answer got it: Close sends what was written and waits a while for the peer to close.
package tlssock
