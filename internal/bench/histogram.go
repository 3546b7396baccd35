package bench

import (
	"math"
	"math/bits"
	"time"
)

// histogram counts durations in buckets that grow with the duration: each power of two of nanoseconds is divided in 64, so that a
// quantile is good to 2 percent. It takes the same memory for any number of them.
type histogram struct {
	counts [64 * fine]uint64
	total  uint64
}

const (
	fineBits = 6
	fine     = 1 << fineBits
)

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.total++
}

// bucket is where n nanoseconds are counted: below 64 exactly, above by the six bits that follow the first.
func bucket(n uint64) int {
	if n < fine {
		return int(n)
	}
	shift := bits.Len64(n) - fineBits - 1
	return (shift+1)<<fineBits + int(n>>shift) - fine
}

// upper is the largest number of nanoseconds that bucket i counts.
func upper(i int) uint64 {
	if i < fine {
		return uint64(i)
	}
	shift := i>>fineBits - 1
	return uint64(fine+i&(fine-1)+1)<<shift - 1
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile returns the duration that a share q of all does not exceed; 0 where there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(uint64(math.Ceil(q*float64(h.total))), 1)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return time.Duration(upper(i))
		}
	}
	return 0
}
