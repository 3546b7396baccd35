// Package egress is the network of an agent that reaches the outside through the kernel alone.
//
// It serves sockets that were made inside the agent's network namespace: an HTTP proxy, a name server, listeners that
// stand for the hosts which the name server answers with, and one listener for each upstream. The socket identifies the
// agent, not the data on it.
//
// # What it promises
//
//   - A host is connected only if the agent's token allows it at that time, and no name is looked up before.
//     Config.Journal lets the kernel decide, and has the intent on disk before the host is dialled.
//   - TLS has the allowed name as server name, and plain HTTP is parsed and rewritten with that name as its host.
//   - Once a token no longer allows a host, no further byte passes, and the connection is closed within a few hundred
//     milliseconds. The same holds for upstreams.
//   - The credential of an upstream goes to that upstream alone. A header of the answer that repeats it is removed; a
//     body that repeats it cannot be recognised in general and is passed on: the upstream is trusted not to do that.
//   - The resources that an agent can use are bounded: connections of each agent and of all, the time until a request
//     is complete, idle time, the length of headers, the number of names.
//
// # What it does not promise
//
//   - The content of TLS is not inspected, except for an upstream that is intercepted: a server that answers for
//     several names can be asked for another one behind the name that was allowed. On ports other than 80 and 443,
//     bytes that do not begin as TLS are passed on as they are.
package egress
