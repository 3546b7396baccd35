package faultfs

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Slow is a Disk's Hook that makes each Sync and SyncDir take some time, by the clock of
// testing/synctest in a bubble. Data written during a sync is not covered by it.
type Slow struct {
	// Each is what every sync takes. Stall is what one in Every takes instead, drawn by chance; no Every means none.
	Each, Stall time.Duration
	Every       int

	// Seed makes the stalls the same in each run where the syncs are.
	Seed uint64

	mu    sync.Mutex
	r     *rand.Rand
	syncs int
}

// Hook waits if op is a sync.
func (s *Slow) Hook(op Op) {
	if op.Kind == Sync || op.Kind == SyncDir {
		time.Sleep(s.next())
	}
}

// Syncs is how many have begun.
func (s *Slow) Syncs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncs
}

func (s *Slow) next() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncs++
	if s.r == nil {
		s.r = rand.New(rand.NewPCG(s.Seed, 0))
	}
	if s.Every > 0 && s.r.IntN(s.Every) == 0 {
		return s.Stall
	}
	return s.Each
}
