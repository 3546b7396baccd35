package delta

import (
	"encoding/binary"
	"slices"
	"sort"
)

// address is where the memory of an agent is kept: origin and agent id, in a form that no other pair has.
func address(origin, agent string) string {
	return string(appendText(nil, origin)) + agent
}

// ledger is the memory of one agent. It is a value: what changes it returns another one, and a copy stays as it is.
type ledger struct {
	last int64   // deltas ever committed, the dropped ones too: the number of the latest
	log  []delta // in force, in the order of their commits, ticks ascending
}

// delta is one change of a memory.
type delta struct {
	tick int64
	body string // see encode
}

// add returns the ledger with another delta. The kernel's tick only grows (PROTOCOL 6); should it not, the delta counts for
// the tick of the one before it, since folding up to a tick means folding a beginning of the log.
func (l ledger) add(tick int64, body string) ledger {
	if n := len(l.log); n > 0 {
		tick = max(tick, l.log[n-1].tick)
	}
	return ledger{last: l.last + 1, log: append(l.log, delta{tick, body})}
}

// upTo returns how many deltas there are up to and including a tick.
func (l ledger) upTo(tick int64) int {
	return sort.Search(len(l.log), func(i int) bool { return l.log[i].tick > tick })
}

// cut returns the ledger with the first n deltas alone. The next gets an array of its own, since copies still read the one before;
// where few stay they do now, so that the others are not kept.
func (l ledger) cut(n int) ledger {
	left := l.log[:n:n]
	if n < len(l.log)/2 {
		left = slices.Clip(slices.Clone(left))
	}
	return ledger{last: l.last, log: left}
}

// appendText appends a text with its length in front.
func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}
