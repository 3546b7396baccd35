package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Start starts a program. It returns once the program runs, that is once execve has worked; ctx bounds only that. Errors
// are *StartError or wrap ErrClosed.
func (h *Host) Start(ctx context.Context, c Command) (*Process, error) {
	return h.start(ctx, c, machine())
}

// start is Start on a machine that has those means.
func (h *Host) start(ctx context.Context, c Command, has means) (*Process, error) {
	p, err := h.prepare(c, has)
	if err != nil {
		return nil, err
	}
	e, err := openEnds(p.command)
	if err != nil {
		p.log.close()
		return nil, p.failed("fork", class(err))
	}
	p.conn, p.stderr = e.conn, e.log
	status, err := h.fork(p, e, has)
	if err != nil {
		p.log.close()
		return nil, errors.Join(p.failed("fork", err), e.closeAll())
	}
	// Everything of the program's that we keep would keep us from seeing that the program closed it.
	closeErr := e.closeTheirs()
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		p.log.drain(e.log)
		closeFile(e.log)
	}()
	go p.run(logged)
	stage, err := hear(ctx, status)
	if err == nil && closeErr == nil {
		return p, nil
	}
	p.Kill()
	<-p.done
	return nil, errors.Join(p.failed(stage, classOf(stage, err)), closeErr, p.conn.Close())
}

// prepare checks a command and opens what has to be there before the fork.
func (h *Host) prepare(c Command, has means) (*Process, error) {
	p := &Process{
		host: h, command: c, told: make(chan struct{}), killed: make(chan struct{}), done: make(chan struct{}),
	}
	var err error
	if p.command, err = c.normal(); err != nil {
		return nil, p.failed("command", err)
	}
	if p.program, err = p.command.find(p.command.environ()); err != nil {
		return nil, p.failed("find", err)
	}
	if p.level, err = p.command.Sandbox.decide(has); err != nil {
		return nil, p.failed("sandbox", err)
	}
	if p.log, err = openLog(p.command.Log); err != nil {
		return nil, p.failed("log", err)
	}
	return p, nil
}

// failed makes a StartError.
func (p *Process) failed(stage string, err error) error {
	name := ""
	if len(p.command.Argv) > 0 {
		name = p.command.Argv[0]
	}
	return &StartError{Program: name, Stage: stage, Err: err}
}

// fork starts the shim. The returned pipe says how it fares. The process is entered before it exists, so that its first
// word to the kernel's socket is already its own.
func (h *Host) fork(p *Process, e *ends, has means) (*os.File, error) {
	status, theirs, err := os.Pipe()
	if err != nil {
		return nil, class(err)
	}
	e.extra = append(e.extra, theirs)
	if err := h.enter(p); err != nil {
		closeFile(status)
		return nil, err
	}
	o := order{
		parent: os.Getpid(), mark: p.mark, status: len(e.files), program: p.program, dir: p.command.Dir,
		env: p.command.environ(), argv: p.command.Argv,
		cpu: p.command.Limits.CPUSeconds, memory: p.command.Limits.MemoryBytes, files: p.command.Limits.OpenFiles,
	}
	if p.command.Sandbox != SandboxOff {
		o.means = has
	}
	p.started = time.Now()
	w, err := h.forks.fork(&forkCall{
		argv: append([]string{shimArg, shimArg}, o.words()...), env: []string{childVar + "=1"}, dir: p.command.Dir,
		files: append(e.files[:len(e.files):len(e.files)], theirs),
	})
	if err != nil {
		h.leave(p)
		close(p.done) // Close may be waiting for it
		closeFile(status)
		return nil, err
	}
	p.begin(w)
	h.mu.Lock()
	h.tell(p)
	h.mu.Unlock()
	return status, nil
}

// hear reads what the shim has to say: nothing, once the program runs.
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

// classOf names the class of what a stage of the shim failed with. The file was found before: what is not there at exec
// is what it names in turn.
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
