package confine

import "os"

// Gaps lists for the operator what a default sandbox does not prevent, the worst first.
func (m Means) Gaps() []string {
	var list []string
	for _, g := range []struct {
		open bool
		text string
	}{
		{!m.hides(), "agents can read the kernel's journal and keys: there are neither mount namespaces nor Landlock, so that no agent starts without --allow-gaps"},
		{m.ABI < 1 && !m.Mounts, "agents can write wherever the daemon's user can: there are neither mount namespaces nor Landlock"},
		{m.ABI < 1 && !m.User, "agents can trace, and so become, any process of the daemon's user, the operator's included (needs Landlock, Linux 5.13)"},
		{!m.Mounts, "agents see names and attributes of hidden files, and can change mode, owner and times of files outside their directory that belong to their user (needs mount namespaces)"},
		{!m.Mounts, "agents can read the files of their project that are hidden, such as .env (needs mount namespaces)"},
		{!m.Mounts, "agents can change the files of their project that programs outside run, such as .vscode/tasks.json (needs mount namespaces)"},
		{!m.Mounts, "agents can read devices that their user may read, such as other terminals and, as user 0, disks (needs mount namespaces)"},
		{!m.Mounts && !m.mediates(), "agents can connect to Unix sockets that have a path, such as those of docker, ssh-agent and D-Bus (needs mount namespaces)"},
		{!m.Mounts, "agents have no /tmp and /dev/shm of their own and cannot write to those of the machine (needs mount namespaces)"},
		{!m.Mounts, "agents can change the hooks and settings of git in a project, which its user's git runs, and cannot commit in a linked work tree or a submodule (needs mount namespaces)"},
		{m.Mounts, "the user's git reads the settings of repositories that an agent makes inside a project, until they are named at its end"},
		{!m.Mounts, "agents cannot write blobs themselves, only read those that the kernel wrote for them (needs mount namespaces)"},
		{!m.Mounts, "programs that ask the system for their home, as the JVM and ssh do, get the machine's instead of HOME (needs mount namespaces)"},
		{!m.Ptys, "programs cannot open pseudo-terminals, so that tmux, script and expect fail (needs mount namespaces with devpts)"},
		{m.Mounts && !m.Overlay, "a hidden file of the home directory that is replaced, or made later, can be read by agents that run (needs overlay file systems)"},
		{m.Mounts && !m.Overlay && !m.mediates(), "agents can connect to Unix sockets in the home directory (needs overlay file systems)"},
		{!m.Network && !m.Filter, "agents can use the network as the daemon's user can, whatever --net says (needs network namespaces or seccomp)"},
		{!m.Network && m.Filter, "agents with --net kernel have no network but Http.Fetch; --localhost leads nowhere, and with --publish no agent starts (needs network namespaces)"},
		{m.Network && !m.Mounts, "agents with --net kernel reach hosts that are in /etc/hosts through the proxy only (needs mount namespaces)"},
		{m.Network && !m.Link, "agents with --net kernel cannot listen on ports 80 and 443, and those that --host names with a port, nor any below 1024 (needs veth devices, and a writable /proc/sys)"},
		{!m.IPC && !m.Filter, "agents can use the shared memory (SysV, POSIX message queues) of other programs (needs IPC namespaces or seccomp)"},
		{!m.IPC && m.Filter, "programs that need SysV shared memory or message queues fail (needs IPC namespaces)"},
		{!m.Filter, "agents can lower resource limits and priority of processes of their user, the daemon included (needs seccomp)"},
		{!m.Filter, "agents can take leases on files, set extended attributes, and make files setuid (needs seccomp)"},
		{!m.Filter, "agents can connect to virtual sockets (vsock) of the machine's host (needs seccomp)"},
		{m.Filter && !m.Notify, "programs cannot set the bit setgid of directories, as git init --shared does (needs Linux 5.19 with seccomp and unix_diag)"},
		{!m.Filter || !m.Notify, "the programs that agents start are not recorded, and rules about them (Program::) have no effect (needs Linux 5.19 with seccomp and unix_diag)"},
		{m.ABI < abiTruncate && !m.Mounts, "agents can empty files outside their directory (needs Linux 6.2)"},
		{m.ABI < abiDevices, "agents can send device commands (ioctl) to devices that they can open (needs Linux 6.10)"},
		{m.ABI < abiScopes, "agents can signal processes of their user, the daemon included (needs Linux 6.12)"},
		{m.ABI < abiScopes, "agents with --net open can connect to abstract Unix sockets (needs Linux 6.12)"},
		{m.Mounts, "agents can read a hidden file in a directory that they may write, or a file of the project such as .env, for the moment in which another program replaces it, and one that is made later: hide a directory instead"},
		{true, "what an agent makes of files that programs outside run, such as .envrc, is there until the end of its step, and where no steps are kept after it"},
		{m.Mounts, "agents can change a file that programs outside run, such as .vscode/tasks.json, for the moment in which another program replaces it"},
		{m.Mounts && !m.mediates(), "agents can connect to a Unix socket that another program makes, while they run, in a directory that they may write, or in one that they can read outside /run, /tmp and the home directory where none was when they started (needs Linux 5.19 with seccomp and unix_diag)"},
		{m.Mounts && !m.mediates(), "agents can connect to a Unix socket in a directory that they may write if it was bound under a relative name, or in another network namespace"},
		{os.Geteuid() == 0, "agents that run as user 0 can read what only root can read outside /etc, /var, /boot and home directories, and what is made there while they run (run them as another user: user of [agents])"},
		{true, "agents can take advisory locks (flock) on files that they can read"},
		{true, "agents can choose the processors that processes of their user run on, the daemon included"},
		{!m.PIDs, "agents see the names and command lines of all processes in /proc (needs PID namespaces, and mount namespaces in which /proc can be mounted)"},
		{true, "limits on processor time, memory and descriptors bind each process, not an agent's sum"},
	} {
		if g.open {
			list = append(list, g.text)
		}
	}
	return list
}
