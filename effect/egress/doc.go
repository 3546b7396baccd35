// Package egress is the network of an agent that reaches the outside through the kernel alone.
//
// It serves sockets that were made inside the agent's network namespace: an HTTP proxy, a name server, listeners that stand
// for the hosts which the name server answers with, and one listener for each upstream. Which agent is connected follows from
// the socket, not from what is said on it.
//
// # What it promises
//
//   - A host is connected to where the agent's token allows it now, and nothing is looked up for the agent before.
//     The decision is the kernel's: Config.Journal has it made and the intent on disk before the host is dialled.
//   - TLS asks for the name that was allowed, and plain HTTP is parsed and rewritten with that name as its host.
//   - Once a token no longer allows a host, no further byte passes, and the connection is closed within a few hundred
//     milliseconds. The same goes for upstreams.
//   - The credential of an upstream goes to that upstream alone. A header of the answer that repeats it is removed; a
//     body that repeats it cannot be recognised in general and is passed on: the upstream is trusted not to do that.
//   - What an agent can make it hold is bounded: connections for each agent and in all, the time to say what is
//     wanted, idle time, the length of headers, names that were answered.
//
// # What it does not promise
//
//   - What is said inside TLS is not seen, except for an upstream that is intercepted: a server that answers for several
//     names can be asked for another one behind the name that was allowed. On ports other than 80 and 443, bytes that
//     do not begin as TLS are passed on as they are.
package egress
