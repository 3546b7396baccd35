package code

import (
	"cmp"
	"strconv"
	"time"
)

// Limits bound one call. Zero means the default.
type Limits struct {
	Time        time.Duration // 1 s, from when a worker has the call
	MemoryBytes int64         // 64 MiB, of the handler's runtime
	OutputBytes int64         // 1 MiB, of its answer
}

// Bounds that nobody sets.
const (
	maxLogged = 4 << 10 // bytes that a call may write to its console
	maxSaid   = 1 << 10 // bytes of the text of an error
	// checkTime is what a registration may take: bundling, and loading the code once.
	checkTime = 5 * time.Second
	// late is how long a worker may stay silent beyond a limit before it is killed. It ends a call by itself, but in a few long
	// operations of the engine.
	late = time.Second
	// aside is the memory of a worker beside that of a handler, in bytes: the program itself, and what goes in and out.
	aside = 512 << 20
)

func (l Limits) normal() Limits {
	return Limits{
		Time: cmp.Or(l.Time, time.Second), MemoryBytes: cmp.Or(l.MemoryBytes, 64<<20), OutputBytes: cmp.Or(l.OutputBytes, 1<<20),
	}
}

// words are the limits as arguments of a worker, and readLimits reads them.
func (l Limits) words() []string {
	var words []string
	for _, n := range []int64{int64(l.Time), l.MemoryBytes, l.OutputBytes} {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return words
}

func readLimits(words []string) (l Limits, ok bool) {
	var n [3]int64
	if len(words) != len(n) {
		return l, false
	}
	for i, word := range words {
		var err error
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return l, false
		}
	}
	return Limits{Time: time.Duration(n[0]), MemoryBytes: n[1], OutputBytes: n[2]}, true
}
