//go:build race

package agents_test

// memoryFactor is how many times as much memory the race detector has the daemon use.
const memoryFactor = 6
