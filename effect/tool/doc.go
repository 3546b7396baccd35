// Package tool runs user-space syscalls: tools below root that are called by their path (ABI 4).
//
// A tool reads one JSON value from its standard input and writes one to its standard output. It is a WebAssembly module (WASI
// preview 1, recognised by its first bytes) or an executable file. The file is read once, through an os.Root; exactly the
// bytes that were read are digested and run.
//
// # A module
//
//   - has no files, no network and no environment. Its only arguments are its name and, for a description, --describe.
//   - has a monotonic clock that starts at 0 with the call. Its wall clock always returns 1970-01-01.
//   - has random bytes that depend only on its digest, arguments and input, so that a repeated call has the same answer.
//     They are not secret, and must not be used for keys.
//   - has linear memory up to the limit of NewModules; a request for more fails. The engine limits its call stack
//     to about 100 MB. Tables cannot grow.
//   - is stopped at the time limit, and at the first byte of output beyond the limit.
//
// A bounded number of compiled modules is cached, by digest.
//
// # A program
//
// runs as the programs of agents do, with the limits and the sandbox of package host, which documents what they guarantee. It is a
// private copy in its own directory. In a sandbox, it can write only to its working directory there. When the call ends, the
// program and all its descendants are killed, and the directory is removed.
//
// # Description
//
// The description of a tool is a schema.ToolManifest: the content of the file <tool>.json next to it, else the output of the
// tool for the argument --describe.
package tool
