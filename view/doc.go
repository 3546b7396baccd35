// Package view formats the kernel's answers for people.
//
// Its functions make rows, lines and tables from typed answers: processes, grants, the record, a syscall's
// description, the grant that a run needed. They make no calls, know no command line, and write nothing, so that any
// front end can use them. Text of others is escaped, so that it cannot control a terminal.
package view
