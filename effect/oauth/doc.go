// Package oauth logs in at MCP servers elsewhere, as MCP's authorization (2025-11-25) has it on top of OAuth 2.1.
//
// [Client.LogIn] is the operator's act: it finds the authorization server that an MCP server names, registers there, sends a browser
// there, and waits for the code on loopback. The [Login] that results is sealed and stored by the caller; [Client.Renew] makes
// the next one of it. What an agent does with the server bears no more than its access token, on the far side of the kernel.
//
// # What it promises
//
//   - Whatever a server names is connected to by the address rules of Http.Fetch, over https. Only a server on
//     loopback may name others there, over http too. No redirect is followed, and nothing longer than 1 MiB is read.
//   - A code is taken from the redirect that has the state of this login, once, and only from the issuer that the
//     metadata names; an authorization server that does not say it has PKCE is refused.
//   - A login is good for one address: [Login.Server].
package oauth
