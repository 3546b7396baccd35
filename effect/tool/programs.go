package tool

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/internal/outlog"
	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/schema/fault"
)

// Programs runs executable files.
type Programs struct {
	Host    *host.Host
	User    *osuser.User // that programs run as; see host.Command
	Scratch string       // absolute path of a directory of the kernel; each call has a directory in it
	Sandbox host.Mode
	Net     host.Net // "": host.NetNone
	Private []string // paths of the kernel that are hidden from programs
}

// Limits of a program in addition to Limits.
const (
	openFiles = 64
	processes = 16
)

// run runs a program. When it returns, all processes of the program have ended.
func (p *Programs) run(ctx context.Context, j job) (out output, err error) {
	dir, err := os.MkdirTemp(p.Scratch, "call-")
	if err != nil {
		return output{}, cannotStart("its directory cannot be made")
	}
	defer func() {
		if rmtree.Dir(dir) != nil && err == nil {
			err = failed("what it left cannot be removed")
		}
	}()
	work, program, log := filepath.Join(dir, "work"), filepath.Join(dir, "program"), filepath.Join(dir, "log")
	if err := errors.Join(os.Mkdir(work, 0o700), os.WriteFile(program, j.tool.bits, 0o500), p.User.Own(work, program)); err != nil {
		return output{}, cannotStart("it cannot be copied")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.limits.Time, overdue(j.limits.Time))
	defer cancel()
	process, err := p.start(ctx, host.Command{
		Argv: append([]string{program}, j.args[1:]...), User: p.User, Dir: work, Sandbox: p.Sandbox, Net: cmp.Or(p.Net, host.NetNone), Private: p.Private,
		Places: []host.Place{{Target: work, Write: true}, {Target: program}}, PID: j.pid, AgentID: j.agent,
		Limits: host.Limits{
			CPUSeconds: seconds(j.limits.Time), WallSeconds: seconds(j.limits.Time) + 1, MemoryBytes: j.limits.MemoryBytes,
			OpenFiles: openFiles, Processes: processes,
		},
		Log: host.LogOptions{Path: log, MaxBytes: saidBytes, Files: 2},
	})
	if err != nil {
		return output{}, err
	}
	out.data, err = converse(ctx, process, j)
	out.said = said(log)
	return out, err
}

// start starts a program, and retries after ETXTBSY. A child that the kernel forked while it wrote the copy has the file open for
// writing until it calls exec.
func (p *Programs) start(ctx context.Context, c host.Command) (*host.Process, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		process, err := p.Host.Start(ctx, c)
		switch {
		case err == nil:
			return process, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.Is(err, syscall.ETXTBSY):
			return nil, startError(err)
		}
		sleep(ctx, pause)
	}
}

// startError returns the fault for a program that did not start, without the path of its copy.
func startError(err error) error {
	for _, class := range []error{host.ErrNotExecutable, host.ErrInterpreter, host.ErrTooLong, host.ErrSandbox, host.ErrResources, host.ErrClosed} {
		if errors.Is(err, class) {
			return cannotStart("%v", class)
		}
	}
	return fault.ToolCannotStart.New("the program cannot be started")
}

// converse sends a program its input and returns its output. It returns after all processes of the program have ended.
func converse(ctx context.Context, p *host.Process, j job) ([]byte, error) {
	defer context.AfterFunc(ctx, p.Kill)()
	conn := p.Conn()
	var writer sync.WaitGroup
	writer.Go(func() {
		_, _ = conn.Write(j.input) // a program may answer without reading its input
		_ = conn.CloseWrite()
	})
	out := &bounded{limit: j.limits.OutputBytes, full: p.Kill}
	_, readErr := io.Copy(out, conn)
	exit, _ := p.Wait(context.WithoutCancel(ctx)) // ctx kills the program
	closeErr := conn.Close()
	writer.Wait()
	switch {
	case out.over:
		return nil, tooLong(j.limits.OutputBytes)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case exit.Reason != host.ReasonExited || exit.Code != 0:
		return nil, failed("it %s", exit)
	}
	if errors.Join(readErr, closeErr) != nil {
		return nil, failed("its output cannot be read")
	}
	return out.data, nil
}

// said returns the end of a program's standard error from its log. A program without a sandbox could have replaced the log, so said
// reads only a regular file, and at most its maximum size.
func said(log string) string {
	var t tail
	for _, name := range []string{log + ".1", log} {
		file, _, err := regular.Open(name, os.O_RDONLY)
		if err != nil {
			continue
		}
		if _, head, err := outlog.Header(file); err == nil {
			_, _ = io.Copy(&t, io.NewSectionReader(file, head, 2*saidBytes))
		}
		_ = file.Close() // it was only read
	}
	return string(t.data)
}

// seconds returns a duration in seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
