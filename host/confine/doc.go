// Package confine bounds what a hosted program can reach.
//
// It works in two steps. New makes a Plan in the daemon from what was asked for and what the machine has (Means). The plan
// travels as words to the process that becomes the program, which carries it out before execve:
//
//	Enter     namespaces; the file tree, with directories hidden; a loopback network with listening sockets
//	Restrict  Landlock and the filter of system calls, which need no_new_privs
//
// If a machine lacks one of the means, the plan uses the nearest weaker one, and Means.Gaps says what that leaves
// open. Tests remove means to exercise each weaker plan.
package confine
