//go:build race

package journal_test

// The race detector makes each crash point ten times as dear, and finds nothing in most of them: one goroutine at a time.
const (
	standardCrashPoints = 20_000
	faultSeeds          = 2
)
