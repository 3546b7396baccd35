//go:build !race

package code_test

// slow says that the stack of a worker is several times as large as in the program itself: too large for its limit of memory.
const slow = false
