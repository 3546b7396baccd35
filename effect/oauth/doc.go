// Package oauth logs in at remote MCP servers, by MCP's authorization (2025-11-25) on top of OAuth 2.1.
//
// [Client.LogIn] finds the authorization server that an MCP server names, registers a client there, opens a browser,
// and waits for the code on loopback. The caller seals and stores the resulting [Login]; [Client.Renew] renews it. The
// kernel adds only the access token to an agent's requests; the agent does not see it.
//
// # What it promises
//
//   - Connections to servers that a server names obey the address rules of Http.Fetch, and use https. Only a server on
//     loopback may name others on loopback, also with http. Redirects are not followed, and answers are limited to 1
//     MiB.
//   - A code is accepted once, from the redirect with the state of this login and the issuer of the metadata; an
//     authorization server whose metadata does not name PKCE is refused.
//   - A login is valid for one address: [Login.Server].
package oauth
