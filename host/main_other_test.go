//go:build unix && !linux

package host_test

// helpers returns nil: the helpers are for Linux.
func helpers() map[string]func([]string) int { return nil }

// children returns nil: it is for Linux.
func children() []string { return nil }
