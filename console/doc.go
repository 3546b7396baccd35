// Package console serves a web page that shows a kernel with its record.
//
// A Server is a client of the kernel: it calls with the authority of the user that started it, and formats with package view.
// It runs outside the daemon. A page can make only the calls that the table calls has.
//
// # What it promises
//
//   - The server answers only its own page: on every route it refuses a request for another Host or from another Origin
//     before it reads the body.
//   - Data of the kernel needs a token, which a page gets in exchange for the secret of a link. A link works for one
//     login, for five minutes.
//   - Text of agents and of other kernels is data. The page does not parse it as markup, and the policy of the page allows
//     only scripts, styles and connections of this server.
//   - The stream of events has the entries of the record in order and without gaps, from any entry on.
//
// # What it does not promise
//
//   - That another program of the same user, outside a sandbox, cannot read the link before the user opens it. The
//     page shows an error when its link is already used.
package console
