// Package confine limits what a hosted program can reach.
//
// Confinement has two steps. In the daemon, New makes a Plan from the request and from what the machine has (Means). The
// plan is passed as words to the process that becomes the program, which carries it out before execve:
//
//	Enter     namespaces; the file tree, with directories hidden; a loopback network with listening sockets
//	Restrict  Landlock and the filter of system calls, which need no_new_privs
//
// If a machine lacks one of the means, the plan uses the nearest weaker one, and Means.Gaps lists the consequences. Tests
// remove means to exercise each weaker plan.
package confine
