//go:build !race

package journal_test

// How much the crash tests do; PWOS_CRASH_POINTS overrides the first.
const (
	standardCrashPoints = 100_000
	faultSeeds          = 6
)
