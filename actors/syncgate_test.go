package actors_test

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/promptware-os/pwos/journal/faultfs"
)

// syncGate blocks the fsyncs of the journal's segments until a test releases them.
type syncGate struct {
	begun atomic.Int64 // fsyncs that have reached the gate
	turn  chan struct{}
	opens func()
}

// holdSyncs closes a gate in front of the disk of s. It must be called before anything is sent.
func (s *system) holdSyncs() *syncGate {
	g := &syncGate{turn: make(chan struct{})}
	g.opens = sync.OnceFunc(func() { close(g.turn) })
	s.disk.Hook = func(op faultfs.Op) {
		if op.Kind == faultfs.Sync && strings.HasSuffix(op.Path, ".ndjson") {
			g.begun.Add(1)
			s.kernel.HandOff() // in fake time nothing takes long until a test waits for time to pass
			<-g.turn
		}
	}
	s.t.Cleanup(g.open)
	return g
}

// pass releases one fsync; it waits until there is one.
func (g *syncGate) pass() { g.turn <- struct{}{} }

// open releases all fsyncs, including later ones.
func (g *syncGate) open() { g.opens() }
