package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Start starts a program. It returns when the program runs, after execve; ctx bounds only that. Errors are *StartError or
// wrap ErrClosed.
func (h *Host) Start(ctx context.Context, c Command) (*Process, error) {
	return h.startWith(ctx, c, h.means)
}

// startWith is Start on a machine with those means.
func (h *Host) startWith(ctx context.Context, c Command, has Means) (*Process, error) {
	p, err := h.prepare(c, has)
	if err != nil {
		return nil, err
	}
	e, err := h.openEnds(ctx, p.command, p.plan != nil && has.ABI < 1) // a program can open /proc/self/fd again, also to write
	if err != nil {
		return nil, errors.Join(p.failed("fork", class(err)), p.discard())
	}
	p.conn, p.stderr, p.outlet, p.caller, p.copies = e.conn, e.log, e.outlet, e.caller, e.copies
	if p.plan != nil && e.caller != nil {
		p.plan.Terminal = e.caller.opens && p.plan.OwnPtys()
	}
	status, hand, err := h.fork(p, e)
	if err != nil {
		return nil, errors.Join(p.failed("fork", err), e.closeAll(), p.discard())
	}
	// With a copy of the program's ends, the host would not notice that the program closes them.
	closeErr := e.closeTheirs()
	logged := make(chan struct{})
	h.workers.Go(func() {
		var copies sync.WaitGroup
		for _, c := range e.copies {
			if c.output {
				copies.Go(c.copy)
			} else {
				h.workers.Go(c.copy)
			}
		}
		p.log.drain(e.log, e.outlet, p.seeFrames())
		copies.Wait()
		closeFile(e.log)
		close(logged)
		e.outlet.deliver()
	})
	go p.run(logged)
	if p.command.Used != nil {
		h.workers.Go(p.measure)
	}
	if p.signer != nil {
		h.workers.Go(func() { p.signer.serve(p.done) })
	}
	served := p.awaitHand(ctx, hand)
	stage, err := hear(ctx, status)
	if served != nil && (err == nil || stage == "sandbox") { // it has waited for what failed here
		stage, err = "sandbox", served
	}
	if err == nil && closeErr == nil {
		<-p.named // what the program's process has told before it executed the program
		if p.caller != nil {
			h.workers.Go(func() { p.caller.attend(p) })
		}
		return p, nil
	}
	p.Kill()
	<-p.done
	return nil, errors.Join(p.failed(stage, classOf(stage, err)), closeErr, p.conn.Close())
}

// prepare checks a command and opens what the fork needs.
func (h *Host) prepare(c Command, has Means) (*Process, error) {
	p := &Process{
		host: h, command: c, told: make(chan struct{}), named: make(chan struct{}), killed: make(chan struct{}), done: make(chan struct{}),
	}
	var err error
	if p.command, err = c.normal(); err != nil {
		return nil, p.failed("command", err)
	}
	if p.program, err = p.command.find(p.command.environ(nil)); err != nil {
		return nil, p.failed("find", err)
	}
	if err = p.command.renewTmp(); err != nil {
		return nil, p.failed("temporary files", err)
	}
	if p.plan, p.level, err = p.command.confine(h, has, p.program); err != nil { // it may resolve links in what is there now
		return nil, errors.Join(p.failed("sandbox", err), p.command.removeTmp())
	}
	if p.log, err = openLog(p.command.Log); err != nil {
		return nil, errors.Join(p.failed("log", err), p.command.removeTmp())
	}
	if err = h.watchCovers(p); err != nil {
		return nil, errors.Join(p.failed("sandbox", err), p.discard())
	}
	if p.signer, err = p.command.listenSigner(); err != nil {
		return nil, errors.Join(p.failed("signing", err), p.discard())
	}
	return p, nil
}

// discard gives up what prepare has opened and made.
func (p *Process) discard() error {
	p.host.forgetCovers(p)
	p.signer.close()
	p.log.close()
	return p.command.removeTmp()
}

// failed returns a StartError.
func (p *Process) failed(stage string, err error) error {
	name := ""
	if len(p.command.Argv) > 0 {
		name = p.command.Argv[0]
	}
	return &StartError{Program: name, Stage: stage, Err: err}
}

// fork starts the shim. The pipe status reports errors, and the socket hand, if there is one, receives what it hands
// over. The process is entered before it exists, so that its first connection to the kernel's socket is already
// identified.
func (h *Host) fork(p *Process, e *ends) (status *os.File, hand *net.UnixConn, err error) {
	status, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, class(err)
	}
	e.extra = append(e.extra, theirs)
	files := append(e.files[:len(e.files):len(e.files)], descriptor(theirs))
	o := order{
		parent: os.Getpid(), status: len(e.files), uid: -1, gid: -1, umask: -1, program: p.command.executed(p.program), plan: p.plan,
		env: p.command.environ(p.plan), argv: p.command.Argv,
		cpu: p.command.Limits.CPUSeconds, memory: p.command.Limits.MemoryBytes, files: p.command.Limits.OpenFiles,
	}
	if p.command.Umask != nil {
		o.umask = int(*p.command.Umask)
	}
	if u := p.command.User; u != nil {
		o.uid, o.gid, o.groups = u.UID, u.GID, u.Groups
	}
	defer func() {
		if err != nil {
			closeFile(status)
			if hand != nil {
				_ = hand.Close() // nothing was sent over it
			}
		}
	}()
	if p.plan != nil && p.plan.Hands() {
		var other *os.File
		if hand, other, err = handPair(); err != nil {
			return nil, nil, class(err)
		}
		e.extra = append(e.extra, other)
		o.hand = len(files)
		files = append(files, other)
	}
	reports, told, err := openReports()
	if err != nil {
		return nil, nil, class(err)
	}
	if told != nil {
		defer func() {
			if err != nil {
				_ = reports.Close() // nothing was sent over it
			}
		}()
		e.extra = append(e.extra, told)
		o.report = len(files)
		files = append(files, told)
	}
	var born, tells *os.File
	if p.plan != nil && p.plan.User && p.plan.Namespaces() {
		if born, tells, err = os.Pipe(); err != nil {
			return nil, nil, class(err)
		}
		defer closeFile(born)
		defer closeFile(tells) // a second time, after replaced
		o.born = len(files)
		files = append(files, tells)
	}
	if err = h.enter(p); err != nil {
		return nil, nil, err
	}
	o.mark = p.mark
	p.started = time.Now()
	w, err := h.forks.fork(&forkCall{
		shim: h.shim, argv: append([]string{shimArg, shimArg}, o.words()...), env: shimEnv(), dir: p.command.Dir, files: files,
		first: born == nil && p.plan != nil && p.plan.PIDs,
	})
	if err == nil && born != nil {
		w, err = replaced(w, born, tells)
	}
	if err != nil {
		h.leave(p)
		close(p.done) // Close may be waiting for it
		return nil, nil, err
	}
	w.reports = reports
	p.begin(w)
	h.mu.Lock()
	h.tell(p)
	h.mu.Unlock()
	return status, hand, nil
}

// awaitHand serves what the shim hands over, and waits for. If the shim ends before, its status has the reason.
func (p *Process) awaitHand(ctx context.Context, hand *net.UnixConn) error {
	if hand == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = hand.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := p.serve(hand)
	if closeErr := hand.Close(); err == nil {
		err = closeErr
	}
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// hear reads the shim's status, which is empty when the program runs.
func hear(ctx context.Context, status *os.File) (stage string, err error) {
	defer closeFile(status)
	defer context.AfterFunc(ctx, func() { _ = status.SetReadDeadline(time.Unix(1, 0)) })()
	const most = 4 << 10
	text, err := io.ReadAll(io.LimitReader(status, most))
	if ctx.Err() != nil {
		return "fork", context.Cause(ctx)
	}
	if err != nil {
		return "fork", err
	}
	return readStatus(text)
}

// classOf returns the class of the error in a stage of the shim. The program's file was found before, so a missing file at
// exec is the interpreter that it names.
func classOf(stage string, err error) error {
	classed := class(err)
	switch {
	case stage == "exec" && errors.Is(classed, ErrNotFound):
		return fmt.Errorf("%w: %w", ErrInterpreter, err)
	case stage == "sandbox" && !errors.Is(err, ErrSandbox):
		return fmt.Errorf("%w: %w", ErrSandbox, err)
	case stage == "mark":
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return classed
}

// forks starts processes from one system thread that lives as long as the host. A parent-death signal is sent when the
// forking thread dies, not the process, and Go may end threads at any time.
type forks struct {
	calls chan *forkCall
	done  chan struct{}
}

// forkCall is a request to start a process in a new session.
type forkCall struct {
	shim  *shimFile // the program; nil: this one
	argv  []string
	env   []string
	dir   string
	files []descriptor
	first bool // in a PID namespace of its own
	reply chan forkReply
}

type forkReply struct {
	watched *watched
	err     error
}

// newForks starts the thread.
func newForks() *forks {
	f := &forks{calls: make(chan *forkCall), done: make(chan struct{})}
	go f.run()
	return f
}

// run serves calls until stop. The thread is never unlocked, so it ends with the goroutine: nothing else may run on it,
// since its end kills processes.
func (f *forks) run() {
	defer close(f.done)
	runtime.LockOSThread()
	for call := range f.calls {
		w, err := call.do()
		call.reply <- forkReply{w, err}
	}
}

// stop ends the thread, and with it every process whose parent it is.
func (f *forks) stop() {
	close(f.calls)
	<-f.done
}

// fork starts a process. It must not be called after stop.
func (f *forks) fork(c *forkCall) (*watched, error) {
	c.reply = make(chan forkReply, 1)
	f.calls <- c
	r := <-c.reply
	return r.watched, r.err
}

// do forks.
func (c *forkCall) do() (*watched, error) {
	self := c.shim.path()
	if self == "" {
		var err error
		if self, err = itself(); err != nil {
			return nil, err
		}
	}
	attr := &syscall.ProcAttr{Dir: c.dir, Env: c.env, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, file := range c.files {
		// Fd makes an end of the host's blocking, as programs expect it. The host does not use these ends. Those of a caller are as they were.
		attr.Files = append(attr.Files, file.Fd())
	}
	if len(attr.Files) > 0 {
		raised, lower, err := c.shim.raise(attr.Files[0])
		if err != nil {
			return nil, class(err)
		}
		defer lower()
		attr.Files[0] = raised
	}
	if c.first {
		newPIDs(attr.Sys)
	}
	w := newWatched(attr.Sys)
	pid, err := syscall.ForkExec(self, c.argv, attr)
	runtime.KeepAlive(c.files)
	if err != nil {
		return nil, class(err)
	}
	if err := w.begin(pid); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return nil, class(err)
	}
	return w, nil
}
