package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// throughput is how many messages an actor handles before it lets other goroutines run.
const throughput = 300

// workers runs actors on goroutines that park between jobs. The library's own dispatcher starts a goroutine for every
// message that finds an actor idle, and then pays for the growth of its stack; a parked one has grown already.
type workers struct {
	jobs  chan func()
	done  chan struct{}
	alive sync.WaitGroup
}

var _ actor.Dispatcher = (*workers)(nil)

func newWorkers() *workers {
	return &workers{jobs: make(chan func()), done: make(chan struct{})}
}

// Schedule hands job to a parked worker, or starts one more.
func (w *workers) Schedule(job func()) {
	select {
	case w.jobs <- job:
	default:
		w.alive.Go(func() { w.work(job) })
	}
}

// Throughput implements actor.Dispatcher.
func (w *workers) Throughput() int { return throughput }

func (w *workers) work(job func()) {
	for {
		job()
		select {
		case job = <-w.jobs:
		case <-w.done:
			return
		}
	}
}

// close lets the workers go, and waits for them. Nothing may be scheduled any more.
func (w *workers) close() {
	close(w.done)
	w.alive.Wait()
}
