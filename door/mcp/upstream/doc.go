// Package upstream provides the tools of an MCP server as user-space syscalls (PROTOCOL 11).
//
// The server NAME is the entry mcp/NAME of the kernel's registered syscalls, and each tool of it that the operator has
// accepted is mcp/NAME/TOOL. The registration is the pin: callers see description, kind and schemas as they were
// accepted. The agent mcp.NAME runs [Run]: it starts the server as its child, provides the entry, and carries out
// calls. So the server is confined, restarted and ended with its agent, and has only the agent's authority, which is
// none.
//
// # What it promises
//
//   - A tool whose description, kind or schema is another than the accepted one is not called, nor one that was never
//     accepted.
//   - A server that ends, hangs at its start or cannot be reached is started again, at growing intervals; meanwhile
//     each call gets one error.
//   - Each call is answered exactly once. When its caller no longer waits, the server is told
//     (notifications/cancelled).
package upstream
