// Package sdk generates clients of a kernel for other languages.
//
// A client is one file without dependencies: types from the JSON Schemas of the kernel's syscalls, a method for each
// syscall, and the connection to the kernel, which is a template of this package. The output for a kernel is
// deterministic.
//
// Names and descriptions of registered syscalls are untrusted: they are quoted, so that they cannot contain code.
package sdk
