// Package mcp is the door for hosts that speak the Model Context Protocol: one process of the kernel, served as an MCP server.
//
// A Bridge is a client of the kernel like any other. It has the authority of its process and none beyond that: each tool call,
// each resource that is read, is a call of that process, which the kernel judges and journals. What a call may do is never
// decided here; what is offered follows what the kernel says of that (PROTOCOL 11).
//
// # What it promises
//
//   - It is never the operator: it serves nobody before the kernel has made its connection a process.
//   - A kernel that ends and comes back is found again. Meanwhile each call is answered with one error, in bounded time; none is
//     made twice.
//   - Names of tools do not change while it lives. What a grant takes away stays offered, and is refused with its fix.
package mcp
