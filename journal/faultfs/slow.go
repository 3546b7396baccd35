package faultfs

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Slow is a Disk's Hook that delays each Sync and SyncDir, by the clock of testing/synctest in a bubble. Data
// written during a sync is not covered by it.
type Slow struct {
	// Each is the delay of a sync. One in Every, at random, takes Stall instead; 0 means none.
	Each, Stall time.Duration
	Every       int

	// Seed determines which syncs stall.
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

// Syncs returns how many syncs have started.
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
