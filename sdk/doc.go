// Package sdk writes a kernel's clients for other languages.
//
// A client is one file without dependencies: types made of the JSON Schemas that the kernel tells of its syscalls, a method for
// each of them, and what speaks with the kernel, which is a template of this package. The same kernel makes the same bytes.
//
// Names and descriptions of registered syscalls are anybody's: whatever they hold, what is written is a program that does what
// the template says.
package sdk
