package kernel

import (
	"hash/maphash"
	"sync/atomic"
)

// recentKept is how many changes are remembered: more than a domain makes in the time between the last look of an undo
// at the journal and its step.
const recentKept = 4096

// Recent remembers what a domain has changed last, so that a step that undoes a change can tell whether the same
// thing was changed after the decision. It is no part of the state, and no replay depends on it. The zero value has
// no changes; Shown is safe for concurrent use, the rest is the domain's.
type Recent struct {
	seed   maphash.Seed
	things [recentKept]uint64 // hashes of what was changed; change number n is at n % recentKept
	count  int64              // changes so far
	from   int64              // changes up to this one are unknown
	shown  atomic.Int64       // count at the last Publish
}

// Changed records a change of a thing, which origin and name identify.
func (r *Recent) Changed(origin, name string) {
	r.count++
	r.things[r.count%recentKept] = r.hash(origin, name)
}

// Reset says that earlier changes are unknown: the state is rebuilt. Numbers continue.
func (r *Recent) Reset() { r.from = r.count }

// Publish shows the number of changes. The domain's Publish calls it.
func (r *Recent) Publish() { r.shown.Store(r.count) }

// Shown is the number of changes that were sent to the journal so far.
func (r *Recent) Shown() int64 { return r.shown.Load() }

// Since reports whether the thing may have been changed after change number since.
func (r *Recent) Since(since int64, origin, name string) bool {
	if since < r.from || since > r.count || r.count-since > recentKept {
		return true
	}
	thing := r.hash(origin, name)
	for n := since + 1; n <= r.count; n++ {
		if r.things[n%recentKept] == thing {
			return true
		}
	}
	return false
}

func (r *Recent) hash(origin, name string) uint64 {
	if r.seed == (maphash.Seed{}) {
		r.seed = maphash.MakeSeed()
	}
	return maphash.Comparable(r.seed, [2]string{origin, name})
}
