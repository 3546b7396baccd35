package host

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/host/confine"
	"github.com/promptware-os/pwos/internal/strayframe"
)

// Pauses between checks of processes that are about to end.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
	// lastWords limits the time to read the rest of a pipe.
	lastWords = time.Second
)

// Process is an agent's program with all its descendants.
type Process struct {
	host    *Host
	command Command
	program string
	level   string
	plan    *confine.Plan // nil: not confined
	cover   cover
	conn    Conn
	log     *logger
	stderr  *os.File // source of the log
	outlet  *outlet
	signer  *signer // nil: it signs nothing
	caller  *caller // nil: standard input and output are no client's
	copies  []copied
	mark    mark
	watched *watched
	started time.Time

	asked sync.Once     // TERM is sent once
	told  chan struct{} // closed before it is sent

	named chan struct{} // closed when first is known, or will not be

	mu     sync.Mutex
	first  int         // the system's number of the program; 0: it is not known yet
	reaped bool        // that number, and the group's, may be reused
	reason Reason      // why the host ends it
	until  time.Time   // when its other processes are killed after the first one has ended
	late   *time.Timer // for EndAt, or nil

	used atomic.Int64 // how much of the disk it had; see measure

	suspension suspension

	killed chan struct{} // closed by the first kill
	once   sync.Once
	done   chan struct{}
	exit   Exit // set before done is closed
}

// Conn returns the kernel's end of the channel. The caller must close it; the end of the program does not.
func (p *Process) Conn() Conn { return p.conn }

// PID returns the agent's number in the kernel.
func (p *Process) PID() int64 { return p.command.PID }

// AgentID returns the agent's name.
func (p *Process) AgentID() string { return p.command.AgentID }

// OSPID returns the system's number of the program's process, which leads a process group; 0 before it is known.
func (p *Process) OSPID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

// Program returns the absolute path of the program.
func (p *Process) Program() string { return p.program }

// Sandbox returns the level that is enforced: "namespaces+landlock:v7", "none" if the system has no means, "off".
func (p *Process) Sandbox() string { return p.level }

// Upstreams returns the names of the services for which the program has an address.
func (p *Process) Upstreams() []string { return p.command.Upstreams }

// Channel returns the channel of the program to the kernel.
func (p *Process) Channel() Channel { return p.command.Channel }

// Note adds a line to the program's standard error as its log and its caller see it. It may be called after the end.
func (p *Process) Note(line string) {
	p.log.note(line)
	p.outlet.note(line)
}

// seeFrames returns a function that notes if the program's output, which it is shown, has a frame: the channel is elsewhere. At a
// client's terminal the client does that.
func (p *Process) seeFrames() func([]byte) {
	if p.command.Channel != ChannelFD3 || p.command.Stdio != "" {
		return func([]byte) {}
	}
	var frames strayframe.Finder
	return func(output []byte) {
		if frames.Find(output) {
			p.Note("pwos: " + strayframe.Advice)
		}
	}
}

// LogDropped returns the number of bytes of standard error that could not be written to the log, whether the log says so or not.
func (p *Process) LogDropped() int64 { return p.log.dropped.Load() }

// Done returns a channel that is closed when no process of the agent is left: its first process has ended, and all others
// with its mark were killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns the end when Done is closed, or ctx's error.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("wait for agent %d: %w", p.command.PID, context.Cause(ctx))
	}
}

// Signal sends a signal to the agent's process group: its first process and those that have not left the group.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signalLocked(sig)
}

// signalLocked is Signal for a caller that has locked mu. A signal to an ended process has no effect, and its number is not
// reused while its init runs. EPERM means that the host's user lacks the right.
func (p *Process) signalLocked(sig syscall.Signal) {
	switch {
	case p.watched == nil || p.reaped || p.watched.over():
	case p.first != 0:
		_ = syscall.Kill(-p.first, sig) // ESRCH: the program has left its group, and no other process is in it
		if sig == syscall.SIGKILL {
			_ = syscall.Kill(p.first, sig)
		}
	case sig == syscall.SIGKILL: // there is no program yet
		_ = syscall.Kill(p.watched.pid, sig)
	}
}

// name stores the number of the program. It kills it if Kill was called before it existed.
func (p *Process) name(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = pid
	close(p.named)
	select {
	case <-p.killed:
		p.signalLocked(syscall.SIGKILL)
	default:
	}
}

// Terminate sends TERM to all processes of the agent, kills after the grace those that have not ended, and returns when
// none is left. If ctx ends first, it returns the error of ctx and the termination continues. Several calls share one TERM;
// the shortest grace counts.
func (p *Process) Terminate(ctx context.Context, grace time.Duration) error {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = ReasonOrdered
	}
	if until := time.Now().Add(grace); p.until.IsZero() || until.Before(p.until) {
		p.until = until
	}
	p.mu.Unlock()
	if grace > 0 {
		p.asked.Do(func() {
			close(p.told)
			p.suspension.mu.Lock()
			defer p.suspension.mu.Unlock()
			p.Signal(syscall.SIGTERM)
			p.signalOthers(syscall.SIGTERM)
			p.Signal(syscall.SIGCONT) // a stopped process does not handle TERM
			if p.suspension.halt.Load() {
				p.signalOthers(syscall.SIGCONT)
			}
		})
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
	case <-ctx.Done():
	}
	_, err := p.Wait(ctx)
	return err
}

// Kill kills all processes of the agent immediately. Done is closed when they have ended.
func (p *Process) Kill() { p.killFor(ReasonOrdered) }

// killFor kills for a reason. The first reason is kept.
func (p *Process) killFor(why Reason) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = why
	}
	p.until = time.Time{}
	p.signalLocked(syscall.SIGKILL)
	if p.watched != nil {
		p.watched.hurry()
	}
	p.mu.Unlock()
	p.once.Do(func() { close(p.killed) })
}

// EndAt ends the program at a time, as its limit on wall time does, and replaces an earlier EndAt; the zero time means
// never. It does not block.
func (p *Process) EndAt(end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late != nil {
		p.late.Stop()
		p.late = nil
	}
	if !end.IsZero() && !p.reaped {
		p.late = time.AfterFunc(time.Until(end), func() { p.killFor(ReasonWall) })
	}
}

// begin stores the forked process. It kills it if Kill was called before the fork.
func (p *Process) begin(w *watched) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched = w
	if p.first = w.program(); p.first != 0 {
		close(p.named)
	}
	select {
	case <-p.killed:
		p.signalLocked(syscall.SIGKILL)
	default:
	}
}

// run waits for the program's end and kills the processes that it leaves.
func (p *Process) run(logged <-chan struct{}) {
	if wall := p.command.Limits.wall(); wall > 0 {
		timer := time.AfterFunc(wall, func() { p.killFor(ReasonWall) })
		defer timer.Stop()
	}
	p.hear()
	p.watched.wait()
	ran := time.Since(p.started)
	p.mu.Lock()
	why := p.reason // a later reason cannot be why it ended
	p.mu.Unlock()
	p.awaitOthers()
	p.Signal(syscall.SIGKILL) // the whole group at once, so that no fork escapes
	left := p.killOthers()
	p.mu.Lock()
	status, usage := p.watched.reap()
	p.reaped = true
	p.mu.Unlock()
	p.EndAt(time.Time{})
	// No process of the agent is left that could write. Processes of others that have standard error open are not waited for.
	_ = p.stderr.SetReadDeadline(time.Now().Add(lastWords))
	for _, c := range p.copies {
		_ = c.from.SetReadDeadline(time.Now().Add(lastWords)) // fails for a file, of which nobody reads any more
	}
	p.outlet.end()
	<-logged
	p.exit = exitOf(status, &usage, why, p.command.Limits)
	p.exit.Ran, p.exit.Left = ran, left
	p.host.leave(p)
	close(p.done)
	if p.caller != nil {
		_ = p.caller.close() // nothing more is expected of it
	}
}

// How long the agent's part of the disk is not looked at: at first, and after further looks. The time that a look takes is at most a part
// of that between them, unless that were longer than longestLook: the agent says how much there is to look at.
const (
	firstLook   = time.Second
	lastLook    = 10 * time.Second
	longestLook = time.Minute
	lookPart    = 100
)

// nextLook returns the pause after one pause and a look.
func nextLook(pause, took time.Duration) time.Duration {
	return min(max(min(2*pause, lastLook), lookPart*took), longestLook)
}

// measure kills the agent once it has more of the disk than it may have.
func (p *Process) measure() {
	for pause := firstLook; ; {
		select {
		case <-p.done:
			return
		case <-time.After(pause):
		}
		began := time.Now()
		used := p.command.Used(p.done)
		if p.used.Store(used); used > p.command.Limits.DiskBytes {
			p.killFor(ReasonDisk)
			return
		}
		pause = nextLook(pause, time.Since(began))
	}
}

// Disk returns how much of the disk the agent had when that was last looked at, and how much it may have; 0: that is not bounded.
func (p *Process) Disk() (used, most int64) { return p.used.Load(), p.command.Limits.DiskBytes }

// awaitOthers waits for the other processes for the rest of the grace, after the first one has ended on TERM.
func (p *Process) awaitOthers() {
	p.mu.Lock()
	until := p.until
	p.mu.Unlock()
	for pause := firstPause; time.Now().Before(until) && p.others() > 0; pause = min(2*pause, lastPause) {
		select {
		case <-p.killed:
			return
		case <-time.After(pause):
		}
	}
}

// How long an agent that floods the kernel is suspended: the first time, and at most. Each suspension doubles the time; a
// minute without one resets it.
const (
	firstSuspension = time.Second
	lastSuspension  = 32 * time.Second
	calm            = time.Minute
)

// suspension has the state of Suspend and Halt.
type suspension struct {
	mu    sync.Mutex // also locked while signals are sent, so that no STOP follows the CONT that ends it
	on    bool
	halt  atomic.Bool // all processes should be stopped; see Want
	last  time.Duration
	ended time.Time
}

// Suspend stops all processes of the agent (STOP), continues them after a while (CONT), and then returns. An agent that is
// told to end continues immediately. If it is already suspended, Suspend stops new processes and returns immediately.
func (p *Process) Suspend() {
	s := &p.suspension
	s.mu.Lock()
	first := !s.on
	if first {
		if time.Since(s.ended) > calm {
			s.last = 0
		}
		s.on, s.last = true, min(max(firstSuspension, 2*s.last), lastSuspension)
	}
	pause := s.last
	p.Signal(syscall.SIGSTOP)
	p.signalOthers(syscall.SIGSTOP)
	s.mu.Unlock()
	if !first {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.told:
	case <-p.killed:
	case <-p.done:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.ended = false, time.Now()
	if !p.halts() {
		p.signalOthers(syscall.SIGCONT)
		p.Signal(syscall.SIGCONT)
	}
}

// Want sets whether the agent's processes should be stopped, for the next Halt.
func (p *Process) Want(halt bool) { p.suspension.halt.Store(halt) }

// Halt stops all processes of the agent (STOP) or continues them (CONT), as last set by Want. An agent that is told to end
// continues.
func (p *Process) Halt() {
	s := &p.suspension
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.halts():
		p.Signal(syscall.SIGSTOP)
		p.signalOthers(syscall.SIGSTOP)
		p.signalOthers(syscall.SIGSTOP) // processes started meanwhile
	case !s.on:
		p.signalOthers(syscall.SIGCONT)
		p.Signal(syscall.SIGCONT)
	}
}

// Freeze stops all processes of the agent until the function that it returns is called, and keeps Suspend and Halt waiting.
func (p *Process) Freeze() (thaw func()) {
	s := &p.suspension
	s.mu.Lock()
	p.Signal(syscall.SIGSTOP)
	p.signalOthers(syscall.SIGSTOP)
	p.signalOthers(syscall.SIGSTOP) // processes started meanwhile
	p.awaitStopped()
	return func() {
		if !p.halts() && !s.on {
			p.signalOthers(syscall.SIGCONT)
			p.Signal(syscall.SIGCONT)
		}
		s.mu.Unlock()
	}
}

// halts reports whether the agent's processes should be stopped. They should not if it is told to end.
func (p *Process) halts() bool {
	select {
	case <-p.told:
		return false
	default:
		return p.suspension.halt.Load()
	}
}
