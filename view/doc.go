// Package view formats the kernel's answers for people.
//
// Its functions make rows, lines and tables from typed answers: processes, grants, the record, a syscall's description,
// the grant that a run needed. They make no calls, read no command line and write no output, so that any front end can
// use them. Text that an agent may have chosen is escaped, so that it cannot control a terminal.
package view
