// Package mcp is the door for hosts of the Model Context Protocol: it serves one process of the kernel as an
// MCP server.
//
// A Bridge is a client of the kernel like any other. It has exactly the authority of its process: each tool call, and
// each read of a resource, is a call of that process, which the kernel checks and journals. The bridge makes no access
// decisions; it offers what the kernel allows (PROTOCOL 11).
//
// # What it promises
//
//   - It never acts as the operator: it serves no host before its connection is attached to a process.
//   - It reconnects to a restarted kernel. Meanwhile each call is answered with one error, in bounded time; no call is
//     made twice.
//   - Names of tools do not change while the bridge runs. A revoked tool stays offered, and its calls are refused with a fix.
package mcp
