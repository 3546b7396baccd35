// Package host runs the programs of agents as operating-system processes.
//
// A Host starts programs (Start), each in a session of its own with a clean environment, a channel to the kernel, a bounded log,
// limits, and a sandbox; it knows of any process whether one of them started it (Owner, Peer); it takes each of them
// back with everything that it started (Process.Terminate); and it leaves nothing behind, however it ends.
//
// # How it is done on Linux
//
//	daemon ─ thread that forks ─┬─ guard
//	                            ├─ agent (session, group, mark) ─ whatever it starts (the same mark)
//	                            └─ agent …
//
// The daemon forks itself; the child (Shim) applies limits, privileges and sandbox to itself and executes the program. There
// is no process and no thread that stays for each agent.
//
// Every process of an agent carries its mark, which see: an inherited number that cannot be shed. By it descendants are found,
// however they forked, who adopted them, and whatever session they are in. Ancestry cannot say that: who is
// adopted by process 1 has none. It takes no privileges, no cgroup and no process to stand by.
//
// When the daemon dies without a word, the agents' first processes are killed by the kernel (PR_SET_PDEATHSIG), all others by
// the guard. When the guard is killed too, the next host of the same instance kills what is left.
//
// # What is promised
//
//   - Done is closed only when no process with the agent's mark is left, orphans, other sessions and other groups
//     included.
//   - A process that an agent started is never taken for the operator's, nor for another agent's: Owner says its
//     agent, or fails. One that spoils its mark is killed within a fifth of a second or so.
//   - No descriptor but the channel and standard error is inherited, and no variable but those named in Command.
//   - A confined agent reads, writes and reaches what package confine lets it, and what is private stays hidden or it
//     is not started.
//   - An agent has no privileges, also where the daemon is user 0, and gains none by executing a file.
//   - Standard error is read as long as somebody writes, whatever the disk does; the log's size is bounded.
//
// # What is not
//
//   - Gaps lists what the sandbox does not refuse on this machine. A service of the same user that runs programs for
//     whoever asks (a user service manager, cron, a terminal multiplexer) runs them outside: such services have to be
//     kept from agents by running the daemon as a user of its own.
//   - With Options.User, a process that lowers both limits of its mark to small values is refused everywhere but not
//     found to be killed.
//   - CPU, memory and descriptor limits bind each process. The number of processes is counted, five times a second: a
//     program can exceed it for that long. Bounding a sum takes a cgroup, which takes delegation by the system.
//   - A program that makes itself unreadable is not found where /proc is mounted with hidepid and the daemon is not
//     root.
//   - A process in an uninterruptible system call ends when that does, and Done waits for it.
//   - Elsewhere than on Linux there are no marks: what leaves the session is lost. Gaps says so.
package host
