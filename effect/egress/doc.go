// Package egress serves the network of an agent that reaches other hosts only through the kernel.
//
// It serves sockets that were created inside the agent's network namespace: an HTTP proxy, a name server, relay listeners
// on the addresses that the name server returns, and one listener for each upstream. The socket identifies the agent, not
// the data on it.
//
// # What it promises
//
//   - The server connects to a host only if the agent's token allows it at that time. It resolves no name before. The kernel
//     decides in Config.Journal, and the intent is on disk before the host is dialled.
//   - TLS has the allowed name as server name, and plain HTTP is parsed and rewritten with that name as its host.
//   - When a token no longer allows a host, no further byte passes, and the connection is closed within a few hundred
//     milliseconds. The same holds for upstreams.
//   - The credential of an upstream is sent only to that upstream. A header of the answer that repeats it is removed. A
//     body that repeats it is passed on: it cannot be recognised in general, and the upstream is trusted not to repeat it.
//   - The resources that an agent can use are bounded: connections per agent and in total, the time until a request
//     is complete, idle time, the length of headers, the number of names.
//
// # What it does not promise
//
//   - The content of TLS is not inspected, except for an intercepted upstream: an agent can ask a server that serves
//     several names for a name other than the allowed one. On ports other than 80 and 443,
//     bytes that do not begin as TLS are passed on unchanged.
package egress
