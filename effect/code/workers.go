package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/schema/fault"
)

// nobody is the PID of workers. It belongs to no process, so that a worker that reaches a socket of the kernel cannot
// make calls.
const nobody = -1

// Workers are processes that each make one call at a time. They are started on demand and reused. Workers is safe for
// concurrent use; the caller bounds the number of calls, and so of workers.
type Workers struct {
	Host    func() (*host.Host, error)
	User    *osuser.User // that they run as; see host.Command
	Scratch string       // directory of the workers, absolute, created if missing; each worker gets one below it
	Private []string     // the kernel's own, hidden
	Limits  Limits
	Log     *slog.Logger

	mu     sync.Mutex
	idle   []*host.Process // most recently used last
	closed bool
	all    sync.WaitGroup // goroutines that wait for the end of a worker
}

// Close ends the workers, and returns when all their processes have ended. No call may be in
// flight.
func (w *Workers) Close() {
	w.mu.Lock()
	w.closed = true
	for _, one := range w.idle {
		one.Kill()
	}
	w.idle = nil
	w.mu.Unlock()
	w.all.Wait()
}

// do makes a call on a worker. If the worker has ended since its last call, do uses another one.
func (w *Workers) do(ctx context.Context, request *frame, limit time.Duration) (frame, error) {
	one := w.take()
	if one != nil {
		answer, err := w.ask(ctx, one, request, limit)
		if !errors.Is(err, fault.ProviderDied) {
			return answer, err
		}
	}
	one, err := w.start(ctx)
	if err != nil {
		return frame{}, err
	}
	return w.ask(ctx, one, request, limit)
}

// ask sends a request and waits for its answer. A worker that fails is killed.
func (w *Workers) ask(ctx context.Context, one *host.Process, request *frame, limit time.Duration) (answer frame, err error) {
	defer context.AfterFunc(ctx, one.Kill)()
	l, conn := w.Limits.normal(), one.Conn()
	until := time.Now().Add(limit + late)
	if err = errors.Join(conn.SetReadDeadline(until), conn.SetWriteDeadline(until)); err == nil {
		err = request.write(conn)
	}
	if err == nil {
		answer, err = readFrame(conn, max(l.OutputBytes, maxSaid), maxLogged)
	}
	if err == nil && answer.is >= statuses {
		err = fmt.Errorf("status %d", answer.is)
	}
	if err == nil {
		w.give(one)
		return answer, nil
	}
	one.Kill()
	switch {
	case ctx.Err() != nil:
		return answer, context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return frame{is: overTime}, nil
	}
	w.Log.Warn("a worker of registered code ended during a call", "process", one.OSPID(), "error", err)
	return answer, fault.ProviderDied.New("the process that ran the handler ended before it answered")
}

// take returns an idle worker, or nil.
func (w *Workers) take() *host.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := len(w.idle); n > 0; n = len(w.idle) {
		one := w.idle[n-1]
		w.idle = w.idle[:n-1]
		if running(one) {
			return one
		}
	}
	return nil
}

// give returns a worker to the idle ones.
func (w *Workers) give(one *host.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		one.Kill()
		return
	}
	w.idle = append(w.idle, one)
}

func running(p *host.Process) bool {
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

// start starts a worker.
func (w *Workers) start(ctx context.Context) (*host.Process, error) {
	h, err := w.Host()
	if err != nil {
		return nil, w.cannotStart(err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, w.cannotStart(err)
	}
	if err := os.MkdirAll(w.Scratch, 0o700); err != nil {
		return nil, w.cannotStart(err)
	}
	dir, err := os.MkdirTemp(w.Scratch, "code-")
	if err == nil {
		err = w.User.Own(dir)
	}
	if err != nil {
		return nil, w.cannotStart(err)
	}
	l := w.Limits.normal()
	c := host.Command{
		Argv: []string{program, workerArg, l.word()}, User: w.User, Env: map[string]string{"GOMAXPROCS": "1"}, Dir: dir,
		Sandbox: host.SandboxStrict, Net: host.NetNone, Private: w.Private, Places: []host.Place{{Target: dir, Write: true}, {Target: program}},
		PID: nobody, AgentID: "code", Limits: host.Limits{MemoryBytes: l.MemoryBytes + 2*l.OutputBytes + aside, OpenFiles: 32, Processes: 4},
	}
	process, err := h.Start(ctx, c)
	if errors.Is(err, host.ErrSandbox) { // the sandbox is a second boundary besides QuickJS
		c.Sandbox, c.AllowGaps = host.SandboxDefault, true
		process, err = h.Start(ctx, c)
	}
	if err != nil {
		removed := os.RemoveAll(dir)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, w.cannotStart(errors.Join(err, removed))
	}
	w.Log.Info("a worker of registered code has started", "process", process.OSPID(), "sandbox", process.Sandbox())
	w.all.Go(func() {
		<-process.Done()
		if err := errors.Join(process.Conn().Close(), os.RemoveAll(dir)); err != nil {
			w.Log.Warn("the directory of a worker of registered code could not be removed", "error", err)
		}
	})
	return process, nil
}

// cannotStart returns the error of a call that was not begun. It logs the cause, which may have paths.
func (w *Workers) cannotStart(err error) error {
	w.Log.Error("a worker of registered code cannot be started", "error", err)
	return fault.ProviderAway.New("the process that runs handlers cannot be started: nothing was done").WithFix("the kernel's log says why")
}

// Limits bound one call. Zero means the default.
type Limits struct {
	Time        time.Duration // 1 s, from when a worker has the call
	MemoryBytes int64         // 64 MiB, of the handler's runtime
	OutputBytes int64         // 1 MiB, of its answer
}

// Bounds without a setting.
const (
	maxLogged = 4 << 10 // bytes of console output of a call
	maxSaid   = 1 << 10 // bytes of the text of an error
	// checkTime bounds a registration: bundling, and loading the code once.
	checkTime = 5 * time.Second
	// late is the time by which a worker may exceed a limit before it is killed. It normally ends a call itself, except
	// in a few long operations of the engine.
	late = time.Second
	// aside is the memory of a worker beyond that of a handler, in bytes: the program itself, its input and output.
	aside = 512 << 20
)

func (l Limits) normal() Limits {
	return Limits{
		Time: cmp.Or(l.Time, time.Second), MemoryBytes: cmp.Or(l.MemoryBytes, 64<<20), OutputBytes: cmp.Or(l.OutputBytes, 1<<20),
	}
}

// word encodes the limits as an argument of a worker, and readLimits decodes it.
func (l Limits) word() string { return fmt.Sprint(int64(l.Time), l.MemoryBytes, l.OutputBytes) }

func readLimits(word string) (l Limits, err error) {
	_, err = fmt.Sscan(word, (*int64)(&l.Time), &l.MemoryBytes, &l.OutputBytes)
	return l, err
}
