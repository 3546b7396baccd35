// Package fetch implements Http.Fetch (MESSAGE appendix D): an HTTP request of a caller that is not trusted.
//
// Runner connects the kernel to a Fetcher: it reads the caller's policy from its token and the body from a blob, and writes a
// long answer to a blob.
//
// A request is checked twice. The scheme, host and port of the URL are checked against the caller's policy. The addresses
// of the host are checked when they are dialled, and exactly these addresses are dialled, which prevents DNS rebinding.
// Each redirect is checked as a new request.
//
// All resources that a server can use are bounded: time, bytes sent, bytes decompressed, and the number of redirects.
// A body of up to Limits.InlineBytes is kept in memory; a longer one is written to Request.Spill.
//
// Errors that a client may see wrap a fault. Their messages have only fixed text and the name of the host: text of a server
// is never repeated, because it could have the credentials that the server was sent.
//
// Calls have no order, and are not retried. When Do returns, nothing of the call runs except what the transport of the
// standard library still does on closed connections.
package fetch
