//go:build !race

package agents_test

// memoryFactor is 1: the daemon uses what it uses.
const memoryFactor = 1
