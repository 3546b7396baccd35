// Package sdk writes a kernel's clients for other languages.
//
// A client is one file without dependencies: types from the JSON Schemas of the kernel's syscalls, a method for each of
// them, and the connection to the kernel, which is a template of this package. The same kernel gives the same bytes.
//
// Names and descriptions of registered syscalls are untrusted: whatever they contain, they cannot change what the
// program does.
package sdk
