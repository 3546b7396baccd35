// Package view is what a person sees of the kernel's answers.
//
// Its functions make rows, lines and tables of typed answers: of processes, grants, the record, a syscall's description, and
// what a run needed. They ask no kernel, know no command line, and write nowhere, so that any front end can show the same.
// Text of others is escaped: nothing in it reaches a terminal that would obey it.
package view
