package faultfs

import (
	"fmt"
	"slices"
	"sync"
)

// A Gate is a Disk's Hook that blocks syncs between their start, which determines what they cover, and their completion,
// until a test releases them: all of them, or each one in any order. A seeded scheduler chooses from Held and calls
// Complete.
type Gate struct {
	// Holds reports whether an operation is blocked; nil blocks every Sync and SyncDir.
	Holds func(Op) bool

	mu    sync.Mutex
	open  bool
	begun int
	held  []heldSync
}

type heldSync struct {
	op   Op
	done chan struct{}
}

// Hook waits if op is to be blocked.
func (g *Gate) Hook(op Op) {
	if op.Kind != Sync && op.Kind != SyncDir || g.Holds != nil && !g.Holds(op) {
		return
	}
	if done := g.arrive(op); done != nil {
		<-done
	}
}

func (g *Gate) arrive(op Op) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun++
	if g.open {
		return nil
	}
	// Created here, so that it belongs to the testing/synctest bubble of the waiting goroutine.
	done := make(chan struct{})
	g.held = append(g.held, heldSync{op, done})
	return done
}

// Begun returns how many syncs have reached the gate.
func (g *Gate) Begun() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun
}

// Held returns the blocked syncs, in order of arrival.
func (g *Gate) Held() []Op {
	g.mu.Lock()
	defer g.mu.Unlock()
	ops := make([]Op, len(g.held))
	for i := range g.held {
		ops[i] = g.held[i].op
	}
	return ops
}

// Complete releases sync number i of Held. It panics if there is none instead of waiting for one, so a test with
// testing/synctest calls synctest.Wait first.
func (g *Gate) Complete(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i < 0 || i >= len(g.held) {
		panic(fmt.Sprintf("faultfs: complete sync %d of %d that are held", i, len(g.held)))
	}
	close(g.held[i].done)
	g.held = slices.Delete(g.held, i, i+1)
}

// Open releases all syncs, including later ones.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	for _, h := range g.held {
		close(h.done)
	}
	g.held = nil
}

// Shut blocks all syncs again.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}
