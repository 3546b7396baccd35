package host

// gaps lists what Landlock at a level does not cover, the worst first.
func gaps(abi int) []string {
	var list []string
	for _, g := range []struct {
		since int // the level that closes it; 0: none does
		text  string
	}{
		{1, "agents can write wherever the daemon's user can: the kernel has no Landlock"},
		{1, "agents can trace, and so become, any process of the daemon's user, the operator's included"},
		{abiTruncate, "agents can empty files outside their directory (needs Linux 6.2)"},
		{abiDevices, "agents can send device commands (ioctl) to devices that they can open (needs Linux 6.10)"},
		{abiScopes, "agents can signal processes of the daemon's user, the daemon included (needs Linux 6.12)"},
		{abiScopes, "agents can connect to abstract Unix sockets (needs Linux 6.12)"},
		{0, "agents can change mode, owner and times of files outside their directory that belong to the daemon's user"},
		{0, "agents can lower resource limits of processes of the daemon's user, the daemon included"},
		{0, "agents can read what the daemon's user can read, and use the network"},
		{0, "agents can ask services of the daemon's user that run programs on request (a user service manager, a terminal multiplexer)"},
		{0, "limits on processor time, memory and descriptors bind each process, not an agent's sum"},
	} {
		if g.since == 0 || abi < g.since {
			list = append(list, g.text)
		}
	}
	return list
}
