// Package tool runs the syscalls of user space: tools below root that are called by their path (ABI 4).
//
// A tool takes one JSON value on its standard input and writes one on its standard output. It is a WebAssembly module (WASI
// preview 1, told by its first bytes) or an executable file. What it is, its bits and their digest, is read once through
// an os.Root; what runs is what was read.
//
// # A module
//
//   - has no files, no network, no environment, and no arguments but its name.
//   - has a monotonic clock that starts at 0 with the call. Its calendar stands still at 1970-01-01.
//   - has random bytes that are made from its digest and its input: the same call sees the same ones, so that what it
//     answers can be had again. They are no secret, and no key may be made from them.
//   - has linear memory up to the bound of NewModules; what it asks for beyond that it does not get. Its call stack
//     is bounded by the engine, at about 100 MB. Tables cannot grow.
//   - is stopped when the time is over, wherever it is, and at the first byte of output too many.
//
// Compiled modules are kept by digest, a bounded number of them.
//
// # A program
//
// runs as the agents' programs do, with the limits and the sandbox of package host: read what that promises and what not. It is a
// private copy in a directory of its own, which is also the only place where a sandbox lets it write. When the call ends, it
// and whatever it has started are killed, and the directory is removed.
//
// # Describing itself
//
// A tool is described by the file beside it, <tool>.json, else by what it writes when it is called with --describe: a
// schema.ToolManifest.
package tool
