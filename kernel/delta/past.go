package delta

import (
	"context"
	"math"
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// past caches the fold of one memory's log. Folding takes as long as the log is, so the goroutine that computes an
// answer does it; the domain only reports drops. It is no part of the state: it can always be computed again.
type past struct {
	turn    chan struct{} // a lock, for the time of a fold
	history history[fold]

	mu    sync.Mutex // locked for a few assignments
	drops int64      // number of drops so far
	left  int        // least number of the folded deltas that are still in force
}

func newPast() *past { return &past{turn: make(chan struct{}, 1), left: math.MaxInt} }

// cut records that the log was cut to its first n deltas.
func (p *past) cut(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops++
	p.left = min(p.left, n)
}

// dropped is the number of drops.
func (p *past) dropped() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drops
}

// begin reads the number of drops, and reports whether it is still drops.
func (p *past) begin(drops int64) (left int, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drops != drops {
		return 0, false
	}
	left, p.left = p.left, math.MaxInt
	return left, true
}

// at returns the fold of the first n deltas of log, which is the log after that many drops.
func (p *past) at(ctx context.Context, log []delta, drops int64, n int) (*schema.FoldedMemory, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h := &p.history
	left, current := p.begin(drops)
	switch {
	case !current:
		h = &history[fold]{} // the cached fold is of another log
	case int(h.now.deltas) > left:
		h.cut(log[:left])
	}
	if done := int(h.now.deltas); done < len(log) {
		for i, d := range log[done:] {
			if i%64 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			h.add(d.body)
		}
	}
	return h.at(log[:n]).output(), nil
}
