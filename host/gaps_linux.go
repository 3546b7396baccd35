package host

// machine says what this one has.
func machine() means { return means{abi: landlockABI(), filter: canFilter()} }

// gaps lists what is not covered by what a machine has, the worst first.
func gaps(has means) []string {
	var list []string
	for _, g := range []struct {
		open bool
		text string
	}{
		{has.abi < 1, "agents can write wherever the daemon's user can: the kernel has no Landlock"},
		{has.abi < 1, "agents can trace, and so become, any process of the daemon's user, the operator's included"},
		{!has.filter, "agents can lower resource limits and priority of processes of the daemon's user, the daemon included (needs seccomp)"},
		{has.abi < abiTruncate, "agents can empty files outside their directory (needs Linux 6.2)"},
		{has.abi < abiDevices, "agents can send device commands (ioctl) to devices that they can open (needs Linux 6.10)"},
		{has.abi < abiScopes, "agents can signal processes of the daemon's user, the daemon included (needs Linux 6.12)"},
		{has.abi < abiScopes, "agents can connect to abstract Unix sockets (needs Linux 6.12)"},
		{true, "agents can change mode, owner and times of files outside their directory that belong to the daemon's user"},
		{true, "agents can choose the processors that processes of the daemon's user run on, the daemon included"},
		{true, "agents can read what the daemon's user can read, and use the network"},
		{true, "agents can ask services of the daemon's user that run programs on request (a user service manager, a terminal multiplexer)"},
		{true, "limits on processor time, memory and descriptors bind each process, not an agent's sum"},
	} {
		if g.open {
			list = append(list, g.text)
		}
	}
	return list
}
