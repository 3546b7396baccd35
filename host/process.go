package host

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/host/confine"
)

// Pauses between looks at processes that are about to end.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
	// lastWords bounds the time to read what a pipe still holds.
	lastWords = time.Second
)

// Process is an agent's program that was started, with all that it started itself.
type Process struct {
	host    *Host
	command Command
	program string
	level   string
	plan    *confine.Plan // nil: it is not confined
	conn    Conn
	log     *logger
	stderr  *os.File // what the log is read from
	mark    mark
	watched *watched
	started time.Time

	asked sync.Once     // TERM is sent once
	told  chan struct{} // closed before it is

	mu     sync.Mutex
	reaped bool        // the group's number may be another's
	reason Reason      // why the host ends it
	until  time.Time   // how long its other processes may go on when the first has ended
	late   *time.Timer // of EndAt; nil: there is none

	suspension suspension

	killed chan struct{} // closed by the first kill
	once   sync.Once
	done   chan struct{}
	exit   Exit // set before done is closed
}

// Conn is the kernel's end of the channel. Whoever uses it closes it; the end of the program does not.
func (p *Process) Conn() Conn { return p.conn }

// PID is the agent's number in the kernel.
func (p *Process) PID() int64 { return p.command.PID }

// AgentID is the agent's name.
func (p *Process) AgentID() string { return p.command.AgentID }

// OSPID is the number of the first process in the system. It leads the agent's session and group.
func (p *Process) OSPID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched == nil { // it can be looked up before it is forked
		return 0
	}
	return p.watched.pid
}

// Program is the absolute path of what was started.
func (p *Process) Program() string { return p.program }

// Sandbox is the level that is enforced: "namespaces+landlock:v7", "none" where the system has none, "off".
func (p *Process) Sandbox() string { return p.level }

// Channel is where the program speaks with the kernel.
func (p *Process) Channel() Channel { return p.command.Channel }

// Note adds a line to the program's log. It may be called after the end.
func (p *Process) Note(line string) { p.log.note(line) }

// LogDropped is how many bytes of standard error could not be written to the log.
func (p *Process) LogDropped() int64 { return p.log.dropped.Load() }

// Done is closed when nothing of the agent is left: its first process has ended, and every other one that carried its
// mark was killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns the end once Done is closed, or ctx's error.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("wait for agent %d: %w", p.command.PID, context.Cause(ctx))
	}
}

// Signal sends a signal to the agent's process group: to its first process and those that did not leave the group.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signal(sig)
}

// signal is Signal with the lock held. A process that has ended takes a signal and does nothing; only once it is reaped
// could the number be another's.
func (p *Process) signal(sig syscall.Signal) {
	if p.watched != nil && !p.reaped {
		_ = syscall.Kill(-p.watched.pid, sig) // ESRCH cannot be; EPERM is the host's own user lacking the right: nothing to do
	}
}

// Terminate asks all processes of the agent to end (TERM), kills after the grace those that have not, and returns when
// none is left. Where ctx ends before that, what was begun goes on and its error is returned. Several calls share one
// TERM; the shortest grace counts.
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
			p.Signal(syscall.SIGCONT) // a stopped process does not hear
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

// Kill kills all processes of the agent at once. Done tells when they are gone.
func (p *Process) Kill() { p.kill(ReasonOrdered) }

// kill kills for a reason. The first reason stays.
func (p *Process) kill(why Reason) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = why
	}
	p.until = time.Time{}
	p.signal(syscall.SIGKILL)
	p.mu.Unlock()
	p.once.Do(func() { close(p.killed) })
}

// EndAt has the program end at a time, as by its limit of wall time, whatever was said before; the zero time: never. It does not wait.
func (p *Process) EndAt(end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late != nil {
		p.late.Stop()
		p.late = nil
	}
	if !end.IsZero() && !p.reaped {
		p.late = time.AfterFunc(time.Until(end), func() { p.kill(ReasonWall) })
	}
}

// begin takes the forked process. A kill that came before it had nothing to kill yet.
func (p *Process) begin(w *watched) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched = w
	select {
	case <-p.killed:
		p.signal(syscall.SIGKILL)
	default:
	}
}

// run waits for the program's end and leaves nothing of it.
func (p *Process) run(logged <-chan struct{}) {
	if wall := p.command.Limits.wall(); wall > 0 {
		timer := time.AfterFunc(wall, func() { p.kill(ReasonWall) })
		defer timer.Stop()
	}
	p.watched.wait()
	ran := time.Since(p.started)
	p.mu.Lock()
	why := p.reason // what comes later cannot have ended it
	p.mu.Unlock()
	p.awaitOthers()
	p.Signal(syscall.SIGKILL) // the group in one step, which no fork gets past
	left := p.killOthers()
	p.mu.Lock()
	status, usage := p.watched.reap()
	p.reaped = true
	p.mu.Unlock()
	p.EndAt(time.Time{})
	// Nothing of the agent's is left that could write. Whoever else was handed standard error is not waited for.
	_ = p.stderr.SetReadDeadline(time.Now().Add(lastWords))
	<-logged
	p.exit = exitOf(status, &usage, why, p.command.Limits)
	p.exit.Ran, p.exit.Left = ran, left
	p.host.leave(p)
	close(p.done)
}

// awaitOthers gives the other processes what is left of the grace when the first one has ended on TERM.
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
