package delta

import (
	"context"
	"math"
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// past is what the log of one memory folds to, kept for the next answer. To fold a log takes as long as it is, so it is done by what
// computes the answers, off the actor: the domain says no more than what it has dropped. It is no part of the state, as it can
// always be made again.
type past struct {
	turn    chan struct{} // holds one while an answer folds
	history history[fold]

	mu    sync.Mutex // held for a few assignments
	drops int64      // how often deltas were dropped
	left  int        // how many of those that were folded are in force at least
}

func newPast() *past { return &past{turn: make(chan struct{}, 1), left: math.MaxInt} }

// cut notes that the log was cut to its first n deltas.
func (p *past) cut(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops++
	p.left = min(p.left, n)
}

// dropped is how often deltas were dropped.
func (p *past) dropped() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drops
}

// begin takes what is known of drops, and reports whether there were none since drops.
func (p *past) begin(drops int64) (left int, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drops != drops {
		return 0, false
	}
	left, p.left = p.left, math.MaxInt
	return left, true
}

// at returns what the first n deltas of log come to, the log being that after so many drops.
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
		h = &history[fold]{} // what is kept is of another log
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
