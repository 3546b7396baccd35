package actors

import (
	"slices"
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

	mu    sync.Mutex
	later []func() // gathered, not run yet
	lent  int      // goroutines that will take what is gathered when they come back
}

// share is how many gathered jobs a worker takes at a time: few enough for two processors to divide the answers that an
// fsync releases, enough for a hand-over to be worth it.
const share = 16

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

// gather keeps job until runGathered or giveBack.
func (w *workers) gather(job func()) {
	w.mu.Lock()
	w.later = append(w.later, job)
	w.mu.Unlock()
}

// runGathered has workers run what was gathered, several jobs each, so that not every one costs a hand-over. Where a goroutine
// is lent, it is left to that.
func (w *workers) runGathered() {
	w.mu.Lock()
	var jobs []func()
	if w.lent == 0 {
		jobs, w.later = w.later, nil
	}
	w.mu.Unlock()
	w.handOut(jobs)
}

// lend says that the caller's goroutine is going to call giveBack, soon and whatever happens.
func (w *workers) lend() {
	w.mu.Lock()
	w.lent++
	w.mu.Unlock()
}

// giveBack ends a lend. A single job is run by the caller, who is awake: a lone client is answered without another goroutine.
func (w *workers) giveBack() {
	w.mu.Lock()
	w.lent--
	jobs := w.later
	w.later = nil
	w.mu.Unlock()
	if len(jobs) == 1 {
		jobs[0]()
		return
	}
	w.handOut(jobs)
}

func (w *workers) handOut(jobs []func()) {
	for part := range slices.Chunk(jobs, share) {
		w.Schedule(func() {
			for _, job := range part {
				job()
			}
		})
	}
}
