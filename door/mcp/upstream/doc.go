// Package upstream provides the tools of an MCP server as user-space syscalls (PROTOCOL 11).
//
// The server NAME is registered as the syscall mcp/NAME, its entry. Each of its tools that the operator has accepted is
// registered as mcp/NAME/TOOL. The registration is the pin: callers see the description, kind and schemas that were
// accepted. The agent mcp.NAME runs [Run]: it starts the server as its child, provides the entry, and runs the calls.
// So the server is sandboxed, restarted and ended with its agent, and has only the agent's authority, which is none.
//
// # What it promises
//
//   - A tool is called only if its description, kind and schemas are the accepted ones.
//   - A server that ends, hangs at its start or is unreachable is restarted, with backoff. Meanwhile
//     each call gets one error.
//   - Each call is answered exactly once. When its caller no longer waits, the server is told
//     (notifications/cancelled).
package upstream
