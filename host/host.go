package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/host/confine"
)

// Options are the settings of a host.
type Options struct {
	// Instance names the kernel, and stays the same over its restarts: the path of its state directory. Two hosts of one
	// instance must not be open at once: each takes the other's agents for leftovers. Empty: a name of its own, and what
	// an earlier host left behind is not found.
	Instance string
	// Means are what to confine programs with; nil: what Probe finds.
	Means *Means
	// User is whom programs run as; nil: as this process does. It takes user 0.
	User *User
}

// Host starts programs and answers for all of them. Its methods may be called from any goroutine.
type Host struct {
	own     mark // what the marks of its agents have in common
	means   Means
	homes   confine.Homes
	user    *User
	forks   *forks
	search  *census
	closing chan struct{} // closed when Close begins
	workers sync.WaitGroup

	tampered atomic.Int64

	mu        sync.Mutex
	closed    bool
	sequence  uint64
	agents    map[mark]*Process
	guardPipe *os.File // its other end is the guard's
}

// New opens a host. It first kills what an earlier host of the same instance left running. It returns an error that wraps
// ErrUnsupported where the system lacks what hosting needs, and where this process is itself hosted.
func New(o Options) (*Host, error) {
	if os.Getenv(childVar) != "" {
		return nil, fmt.Errorf("open host: %w", errNoShim)
	}
	if err := supported(); err != nil {
		return nil, fmt.Errorf("open host: %w", err)
	}
	name := o.Instance
	if name == "" {
		name = fmt.Sprintf("%d-%d", rand.Uint64(), rand.Uint64())
	}
	own, err := settle(instanceOf(name))
	if err != nil {
		return nil, fmt.Errorf("open host: %w", err)
	}
	if o.Means == nil {
		found, err := Probe()
		if err != nil {
			return nil, fmt.Errorf("open host: %w", err)
		}
		o.Means = &found
	}
	h := &Host{
		own: own, means: *o.Means, user: o.User, homes: homes(o.User), forks: newForks(), search: &census{}, closing: make(chan struct{}),
		agents: map[mark]*Process{},
	}
	w, err := h.startGuard()
	if err != nil {
		h.forks.stop()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	h.workers.Add(2)
	go h.keepGuard(w)
	go h.watch()
	return h, nil
}

// Close terminates every agent, as Process.Terminate does with that grace, and returns when nothing of them is left and every
// goroutine of the host has ended. Where ctx ends before, it kills and goes on waiting: what it cannot wait for it
// cannot promise. Twice is fine.
func (h *Host) Close(ctx context.Context, grace time.Duration) {
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	h.mu.Unlock()
	var ends sync.WaitGroup
	for _, p := range h.Processes() {
		ends.Go(func() {
			if err := p.Terminate(ctx, grace); err != nil {
				p.Kill()
				<-p.Done()
			}
		})
	}
	ends.Wait()
	if !first {
		h.workers.Wait()
		return
	}
	close(h.closing)
	h.dropGuard()
	h.workers.Wait()
	h.forks.stop()
}

// Processes returns the agents' programs that run, in no order.
func (h *Host) Processes() []*Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Process, 0, len(h.agents))
	for _, p := range h.agents {
		list = append(list, p)
	}
	return list
}

// enter gives a process its mark. Every process that was entered leaves again.
func (h *Host) enter(p *Process) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	// Only made, never written to: that it may be a link of the agent's does no harm.
	if err := os.Mkdir(p.command.tmp(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make directory for temporary files: %w", err)
	}
	if h.user != nil {
		if err := os.Lchown(p.command.tmp(), h.user.UID, h.user.GID); err != nil {
			return fmt.Errorf("give directory for temporary files to user %d: %w", h.user.UID, err)
		}
	}
	for {
		h.sequence++
		p.mark = newMark(h.own.instance(), h.own.incarnation(), h.sequence)
		if h.agents[p.mark] == nil {
			break
		}
	}
	h.agents[p.mark] = p
	h.workers.Add(1)
	return nil
}

// leave forgets a process of which nothing is left.
func (h *Host) leave(p *Process) {
	h.mu.Lock()
	delete(h.agents, p.mark)
	h.tell(p)
	if !h.works(p.command.Dir) {
		_ = os.Remove(p.command.tmp()) // which leaves one that is not empty
	}
	h.mu.Unlock()
	h.workers.Done()
}

// works reports whether an agent has that working directory. h.mu is held.
func (h *Host) works(dir string) bool {
	for _, p := range h.agents {
		if p.command.Dir == dir {
			return true
		}
	}
	return false
}

// Tampered is how many processes were killed because they had spoiled their marks.
func (h *Host) Tampered() int64 { return h.tampered.Load() }

// How often all processes are looked at while agents run.
const (
	lookEvery = 200 * time.Millisecond
	// A look may take one part of so many of the time, so that looking at many stays cheap, but for the bound.
	lookShare  = 50
	lookAtMost = time.Second
)

// watch kills agents that have more processes than they may, and processes that have spoiled their marks.
func (h *Host) watch() {
	defer h.workers.Done()
	pause := lookEvery
	for {
		select {
		case <-h.closing:
			return
		case <-time.After(pause):
		}
		began := time.Now()
		h.look()
		pause = min(max(lookEvery, lookShare*time.Since(began)), lookAtMost)
	}
}

// look looks once, if any agent runs.
func (h *Host) look() {
	agents := h.Processes()
	if len(agents) == 0 {
		return
	}
	found, err := h.search.fresh()
	if err != nil {
		return // the next look finds them
	}
	h.killSpoiled(found)
	for _, p := range agents {
		if most := p.command.Limits.Processes; most > 0 && int64(len(found[p.mark])) > most && int64(own(found[p.mark])) > most {
			p.kill(ReasonProcesses)
		}
	}
}
