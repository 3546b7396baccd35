package inside

import "golang.org/x/sys/unix"

// Agent reports whether this process belongs to an agent of a kernel. An agent cannot hide it: it cannot raise a hard limit.
func Agent() bool {
	var limit unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &limit); err != nil {
		return false // a process may always read its own limits
	}
	return limit.Max >= MarkBase && limit.Max != unix.RLIM_INFINITY
}
