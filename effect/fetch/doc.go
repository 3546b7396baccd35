// Package fetch performs Http.Fetch (MESSAGE appendix D): one HTTP exchange for a caller that is not trusted.
//
// Runner stands between the kernel and a Fetcher: it reads the caller's policy from its token, the body from a blob, and writes a
// long answer to one.
//
// What is asked for is judged twice. The URL is judged as text: scheme, host and port against the caller's policy. The
// addresses that its name resolves to are judged when they are dialled, and those very addresses are dialled, so that a
// resolver that answers differently the second time wins nothing. Each redirect is judged as a new request.
//
// Everything that a server decides is bounded: how long it takes, how much it sends, what that unpacks to, how often it
// redirects. A body is held in memory up to Limits.InlineBytes; what is longer goes where the request says.
//
// Errors wrap a fault where a client may see them. They are made here, from fixed words and the host's name: what a server said
// is never repeated, since it knows the credentials that it was sent.
//
// It promises no order between calls and does not try again. Nothing of a call is left when Do returns but what the
// standard library's transport still has to wind up on connections that are closed.
package fetch
