// Package view formats the kernel's answers for people.
//
// Its functions make rows, lines and tables of typed answers: processes, grants, the record, a syscall's description,
// and what a run needed. They make no calls, know no command line, and write nothing, so that any front end can use
// them. Text of others is escaped: a terminal does not obey it.
package view
