// Package host runs the programs of agents as operating-system processes.
//
// A Host starts programs (Start), each in a new session with a clean environment, a channel to the kernel, a bounded log,
// limits, and a sandbox. It finds the program that a process belongs to (Owner, Peer), ends a program with all its
// descendants (Process.Terminate), and leaves no process behind, however it ends.
//
// # Implementation on Linux
//
//	daemon ─ thread that forks ─┬─ guard
//	                            ├─ agent (session, group, mark) ─ whatever it starts (the same mark)
//	                            └─ agent …
//
// The daemon forks itself; the child (Shim) applies limits, privileges and sandbox to itself and executes the program. No
// process and no thread of the host remains for each agent.
//
// Every process of an agent has its mark (type mark), an inherited number that it cannot remove. The mark finds descendants in
// any session, also after a double fork. Ancestry is not sufficient, since an orphan is adopted by process 1. Marks need no
// privileges, no cgroup and no supervising process.
//
// When the daemon dies unexpectedly, the system kills the agents' first processes (PR_SET_PDEATHSIG), and the guard kills
// all others. If the guard is killed too, the next host of the same instance kills the rest.
//
// # What it promises
//
//   - Done is closed only when no process with the agent's mark is left, including orphans, other sessions and other groups.
//   - A process that an agent started never counts as the operator's, or as another agent's: Owner returns its agent, or
//     fails. A process that breaks its mark is killed within about a fifth of a second.
//   - A program inherits only the channel and standard error, and only the variables in Command.
//   - A confined agent reads, writes and reaches only what package confine allows. What is private stays hidden, or the agent
//     is not started.
//   - An agent has no privileges, also if the daemon is user 0, and gains none by executing a file.
//   - Standard error is read as long as a process writes to it, also if the disk fails; the log's size is bounded.
//
// # What it does not promise
//
//   - Gaps lists what the sandbox does not prevent on this machine. A service of the same user that runs programs on
//     request (a user service manager, cron, a terminal multiplexer) runs them outside of the sandbox. To prevent that, run
//     the daemon as a separate user.
//   - With Options.User, a process that lowers both limits of its mark to small values is refused everywhere, but it is not
//     found and killed.
//   - Limits on CPU, memory and descriptors apply to each process. The number of processes is checked five times a second, and
//     a program can exceed it in between. Limits on a sum need a cgroup, which the system must delegate.
//   - A program that makes itself unreadable is not found if /proc is mounted with hidepid and the daemon is not root.
//   - A process in an uninterruptible system call ends when that does, and Done waits for it.
//   - On other systems than Linux there are no marks: a process that leaves the session is not found. Gaps says so.
package host
