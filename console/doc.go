// Package console serves the web page on which a person watches a kernel.
//
// A Server is a client of the kernel: it asks with the authority of the user that started it, and shows with package view.
// It runs outside of the daemon, and a page can ask it for nothing but what the table of calls names.
//
// # What it promises
//
//   - It answers its own page only: a request for another Host, or from another Origin, is refused on
//     every route, before anything else is read.
//   - Nothing of the kernel is shown without a token, which a page gets in exchange for the secret of a link. A link
//     works for one login, within a few minutes.
//   - Text of agents, and of other kernels, is data. The page makes no markup of it, and its policy allows no script,
//     style or connection but the server's own.
//   - The events of the record come in their order and without gaps, from any entry on.
//
// # What it does not promise
//
//   - That another program of the same user, outside of a sandbox, cannot read the link before the user opens it. The
//     page says so when it finds its link used.
package console
