package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/host/confine"
)

// Options are the settings of a host.
type Options struct {
	// Instance identifies the kernel across restarts: the path of its state directory. Two hosts of one instance must not
	// be open at the same time, since each would kill the other's agents as leftovers. "" means a unique name; then
	// leftovers of an earlier host are not found.
	Instance string
	// Means are the machine's means to confine programs; nil: those that Probe finds.
	Means *Means
	// Shim is the path of a program that calls Shim, and starts the programs of agents in place of this one; "": this one.
	Shim string
	// Veils is the path of a directory for what hides names from programs, and is the same for many. It is made, and removed by Close; "":
	// each program has its own, as it has where that fails.
	Veils string
	Log   *slog.Logger // nil: none
}

// Host starts programs and tracks them. Its methods may be called from any goroutine.
type Host struct {
	own      mark // the part that its agents' marks have in common
	means    Means
	rootOnly rootOnly
	secrets  secretsOf
	forks    *forks
	shim     *shimFile
	veils    *confine.Veils // nil: none
	search   *census
	covers   covers
	closing  chan struct{} // closed when Close starts
	workers  sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	sequence  uint64
	agents    map[mark]*Process
	claims    map[string]*Process      // by the name of a socket that was connected for a program: see claimed
	outlets   map[string]chan struct{} // for each FIFO of a caller, outlet.over of the latest program
	guardPipe *os.File                 // the guard has the other end
}

// New opens a host. It first kills the programs that an earlier host of the same instance left running. The error wraps
// ErrUnsupported if the system lacks what hosting needs, or if this process is itself hosted.
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var veils *confine.Veils // nil shares nothing
	if o.Veils != "" {
		if veils, err = confine.NewVeils(o.Veils); err != nil {
			o.Log.Warn("each program makes what hides names from it", "error", err)
		}
	}
	shim, err := openShim(o.Shim)
	if err != nil {
		return nil, fmt.Errorf("open host: %w", err)
	}
	h := &Host{
		own: own, means: *o.Means, forks: newForks(), shim: shim, veils: veils, search: &census{}, closing: make(chan struct{}),
		agents: map[mark]*Process{}, claims: map[string]*Process{}, outlets: map[string]chan struct{}{},
	}
	w, err := h.startGuard()
	if err != nil {
		h.forks.stop()
		h.shim.close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	h.workers.Add(2)
	go h.keepGuard(w)
	go h.watch()
	return h, nil
}

// Close terminates every agent, as Process.Terminate does with that grace, and returns when none of their processes is left
// and every goroutine of the host has ended. If ctx ends first, it kills them and still waits. It may be called twice.
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
	h.shim.close()
	_ = h.veils.Close() // what is left is removed by the next host
}

// Processes returns the running programs of agents, in no particular order.
func (h *Host) Processes() []*Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Process, 0, len(h.agents))
	for _, p := range h.agents {
		list = append(list, p)
	}
	return list
}

// RunsAs reports whether a program runs as another user, with that number, than this process.
func (h *Host) RunsAs(uid int) bool {
	return slices.ContainsFunc(h.Processes(), func(p *Process) bool { return p.command.User != nil && p.command.User.UID == uid })
}

// enter assigns a mark to a process. leave must follow.
func (h *Host) enter(p *Process) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	if err := p.command.shareTmp(); err != nil {
		return err
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

// leave removes a process after its end.
func (h *Host) leave(p *Process) {
	_ = p.command.removeTmp() // what is left is removed at the next start
	h.forgetCovers(p)
	h.mu.Lock()
	delete(h.agents, p.mark)
	h.tell(p)
	if p.command.Tmp == "" && !h.works(p.command.Dir) {
		_ = os.Remove(p.command.tmp()) // fails if it is not empty
	}
	h.mu.Unlock()
	h.workers.Done()
}

// work runs f on a goroutine that Close waits for. It reports false if the host is closed.
func (h *Host) work(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.workers.Go(f)
	return true
}

// works reports whether an agent has that working directory. h.mu is locked.
func (h *Host) works(dir string) bool {
	for _, p := range h.agents {
		if p.command.Dir == dir {
			return true
		}
	}
	return false
}

// How often all processes are checked while agents run.
const (
	lookEvery = 200 * time.Millisecond
	// lookShare limits the time that checks use to one part in so many, apart from the minimum rate.
	lookShare  = 50
	lookAtMost = time.Second
)

// watch kills agents with too many processes, and processes that have changed their marks.
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

// look checks all processes once, if any agent runs.
func (h *Host) look() {
	agents := h.Processes()
	if len(agents) == 0 {
		return
	}
	found, err := h.search.fresh()
	if err != nil {
		return // the next check finds them
	}
	h.killSpoiled(found)
	for _, p := range agents {
		if most := p.command.Limits.Processes; most > 0 && int64(len(found[p.mark])) > most && int64(own(p.withoutInit(found[p.mark]))) > most {
			p.killFor(ReasonProcesses)
		}
	}
}

// Classes of failed starts. Errors of Start wrap one of them if the class is known.
var (
	// ErrCommand says that the command is invalid: no program, NUL in a word, a bad setting.
	ErrCommand = errors.New("command is not valid")
	// ErrNotFound says that the program, or the working directory, does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotExecutable says that the file cannot be executed: a directory, no execute permission, or no known format.
	ErrNotExecutable = errors.New("not executable")
	// ErrInterpreter says that the interpreter or loader of the program does not exist.
	ErrInterpreter = errors.New("interpreter is missing")
	// ErrTooLong says that argv and environment exceed the system's limit.
	ErrTooLong = errors.New("arguments are too long")
	// ErrSandbox says that a strict sandbox cannot be enforced here.
	ErrSandbox = errors.New("sandbox cannot be enforced")
	// ErrResources says that the system has no more processes, descriptors or memory.
	ErrResources = errors.New("out of system resources")
	// ErrUnsupported says that the system lacks what hosting needs.
	ErrUnsupported = errors.New("not supported by this system")
	// ErrClosed says that the host was closed.
	ErrClosed = errors.New("host is closed")
)

// StartError says why a program could not be started.
type StartError struct {
	// Program is the requested argv[0].
	Program string
	// Stage is the stage that failed: "command", "find", "temporary files", "log", "fork", "limits", "terminal", "mark", "sandbox", "exec".
	Stage string
	// Err wraps one of the classes, or is the system's error.
	Err error
}

// Error returns the program, the stage and the cause.
func (e *StartError) Error() string {
	if e.Stage == "find" { // the cause is sufficient
		return fmt.Sprintf("start %q: %v", e.Program, e.Err)
	}
	return fmt.Sprintf("start %q: %s: %v", e.Program, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
