//go:build unix && !linux

package host_test

// helpers are for Linux.
func helpers() map[string]func([]string) int { return nil }

// children is for Linux.
func children() []string { return nil }
