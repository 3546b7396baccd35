package actors_test

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/promptware-os/pwos/journal/faultfs"
)

// syncGate keeps the fsyncs of the journal's segments waiting until a test lets them go.
type syncGate struct {
	begun atomic.Int64 // fsyncs that have come to the gate
	turn  chan struct{}
	opens func()
}

// holdSyncs closes a gate before the disk of s. It must be called before anything is sent.
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

// pass lets one fsync go on; it waits until there is one.
func (g *syncGate) pass() { g.turn <- struct{}{} }

// open lets every fsync go on, from now on.
func (g *syncGate) open() { g.opens() }
