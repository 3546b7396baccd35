package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// agentLog follows what a program wrote to standard error, in the files that the kernel keeps of it.
type agentLog struct {
	path string
	file *os.File // nil: nothing was opened yet
	out  io.Writer
}

// newAgentLog is the log of a process, to be written to out from its beginning as far as it is kept.
func newAgentLog(pid int64, out *os.File) (*agentLog, error) {
	path, err := agentLogFile(pid)
	if err != nil {
		return nil, err
	}
	l := &agentLog{path: path, out: out}
	if term.IsTerminal(int(out.Fd())) {
		l.out = &view.PlainWriter{To: out}
	}
	return l, nil
}

// open opens the file at path, and reports whether there is one.
func (l *agentLog) open(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open log: %w", err)
	}
	l.file = file
	return true, nil
}

// copy writes what has come since the last time. Where the kernel has begun a new file meanwhile, it goes on with that.
func (l *agentLog) copy() error {
	if l.file == nil {
		if found, err := l.open(l.path); err != nil || !found {
			return err
		}
	}
	for {
		// Asked before the file is read: once another has its name, nothing is added to it.
		moved, err := l.moved()
		if err != nil {
			return err
		}
		if _, err := io.Copy(l.out, l.file); err != nil {
			return fmt.Errorf("show log: %w", err)
		}
		if !moved {
			return nil
		}
		if err := l.close(); err != nil {
			return err
		}
		if found, err := l.open(l.path); err != nil || !found {
			return err
		}
	}
}

// copyLast is copy, of the last lines alone; nil is all of them. A line that has not ended yet is one.
func (l *agentLog) copyLast(lines *int64) error {
	if lines == nil {
		return l.copy()
	}
	out := l.out
	var all bytes.Buffer // a mebibyte or two
	l.out = &all
	err := l.copy()
	l.out = out
	if err != nil {
		return err
	}
	if _, err := out.Write(lastLines(all.Bytes(), *lines)); err != nil {
		return fmt.Errorf("show log: %w", err)
	}
	return nil
}

// lastLines is the end of text from its last lines on, so many.
func lastLines(text []byte, lines int64) []byte {
	begin := len(text)
	for ; lines > 0 && begin > 0; lines-- {
		begin = bytes.LastIndexByte(text[:begin-1], '\n') + 1
	}
	return text[begin:]
}

// moved reports whether the open file is not the current one any more.
func (l *agentLog) moved() (bool, error) {
	own, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	current, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) { // between two names
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	return !os.SameFile(own, current), nil
}

// wait shows the log as it comes until there is news, the pause is over, or ctx ends.
func (l *agentLog) wait(ctx context.Context, pause time.Duration, news <-chan struct{}) error {
	const glance = 25 * time.Millisecond
	end := time.NewTimer(pause)
	defer end.Stop()
	every := time.NewTicker(glance)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end.C:
			return nil
		case <-news:
			return nil
		case <-every.C:
			if err := l.copy(); err != nil {
				return err
			}
		}
	}
}

// close lets go of the open file, which was only read.
func (l *agentLog) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}

// life tells when something happens to processes, over a connection of its own. What it was, the process's descriptor says:
// asking after each piece of news is an entry of the journal for each, not one for each look.
type life struct {
	news chan struct{} // has one in it when there is news since the last was taken

	client  *client.Client
	in      *io.PipeWriter
	cancel  context.CancelFunc
	stream  sync.WaitGroup
	refused atomic.Bool
	half    []byte // a line that has not come to its end yet

	mu        sync.Mutex
	restarted []schema.Descriptor // processes whose program runs again, as they were then, not yet taken
}

// followLife follows a process, or all where pid is 0. The first news is that it does; what happens after that is not
// missed.
func followLife(ctx context.Context, options client.Options, pid int64) (*life, error) {
	c, err := client.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	in, frames := io.Pipe()
	l := &life{news: make(chan struct{}, 1), client: c, in: frames}
	ctx, l.cancel = context.WithCancel(ctx)
	l.stream.Go(func() {
		if _, err := c.Stream(ctx, letGo{in}, l); err != nil && ctx.Err() == nil {
			l.refused.Store(true) // the kernel is gone, as the next look finds out
			l.tell()
		}
		_ = in.Close() // always nil
	})
	data := schema.Value("{}")
	if pid != 0 {
		data = view.Object(nil).Integer("pid", pid).Close()
	}
	frame := schema.AppendMessage(nil, &schema.Message{
		Kind: schema.KindQuery, Type: "Process.Subscribe", Data: data,
		Meta: schema.Metadata{Present: true, ID: schema.NewStamper().NewID(), Timestamp: time.Now().UnixMilli()},
	})
	_, _ = frames.Write(frame) // fails where the stream has ended, which has told so
	return l, nil
}

// letGo is input that a stream can let go of when the kernel has closed the connection: else it would wait for more of it, and
// nobody would be told.
type letGo struct{ *io.PipeReader }

// SetReadDeadline ends reading at once; a stream sets no deadline but one that is past.
func (l letGo) SetReadDeadline(time.Time) error { return l.Close() }

// Write takes what the kernel says, in pieces that may end anywhere.
func (l *life) Write(p []byte) (int, error) {
	l.half = append(l.half, p...)
	for {
		line, rest, whole := bytes.Cut(l.half, []byte("\n"))
		if !whole {
			break
		}
		l.hear(line)
		l.half = rest
	}
	l.tell()
	return len(p), nil
}

// hear takes one line. A kernel that does not do this is one to be asked again and again.
func (l *life) hear(line []byte) {
	m, failure := schema.Decode(bytes.Clone(line), schema.OsMessage)
	if failure != nil || m.Kind == schema.KindError {
		l.refused.Store(true)
		return
	}
	if m.Type != schema.ProcessRestarted {
		return
	}
	if d, ok := view.As[schema.Descriptor](m.Data); ok {
		l.mu.Lock()
		l.restarted = append(l.restarted, d)
		l.mu.Unlock()
	}
}

// restarts takes those who were started again since the last time, as they were then: Exit is the end that it followed.
func (l *life) restarts() []schema.Descriptor {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.restarted
	l.restarted = nil
	return taken
}

func (l *life) tell() {
	select {
	case l.news <- struct{}{}:
	default: // there is some already
	}
}

// Bounds of the pause between two looks at a process whose news does not come by itself.
const (
	shortLook = 5 * time.Millisecond
	longLook  = 250 * time.Millisecond
)

// pause is how long to wait for news before looking all the same, when the last pause was as given.
func (l *life) pause(last time.Duration) time.Duration {
	if !l.refused.Load() {
		return time.Minute
	}
	return min(max(last, shortLook)*3/2, longLook)
}

// Close ends following.
func (l *life) Close() error {
	l.cancel()
	_ = l.in.Close() // always nil
	l.stream.Wait()
	return l.client.Close()
}

func newLogs(a *app) *cobra.Command {
	var follow bool
	var lines *int64
	cmd := &cobra.Command{
		Use:   "logs PID",
		Short: "show what an agent wrote to standard error",
		Long: `logs prints what an agent's program wrote to standard error, as far as it is kept: the
last mebibyte or two, over restarts and after its end. --lines 20 prints the last 20
lines of that. --follow goes on until the process has ended, or until interrupted.

The files are read where a kernel of this environment keeps them: PWOS_STATE_DIR has
to be what it is for the kernel.

Exit status: 4 there never was such a process, or it runs no program.`,
		Example: `  pwos logs 7
  pwos logs -n 20 7
  pwos logs -f 7`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := pidOf(args[0], 1)
			if err != nil {
				return usage(cmd, err)
			}
			return a.logs(cmd.Context(), pid, lines, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the process has ended")
	cmd.Flags().VarP(number(&lines, 0), "lines", "n", "only the last lines, so many (default: all)")
	return cmd
}

// logs prints the last lines of the log, nil: all of it.
func (a *app) logs(ctx context.Context, pid int64, lines *int64, follow bool) error {
	limit := usualTimeout
	if follow {
		limit = 0
	}
	return a.withKernel(ctx, limit, func(ctx context.Context, c *client.Client) (err error) {
		d, err := describe(ctx, c, pid)
		if err != nil {
			return err
		}
		if d.Command == nil && d.AgentID != "" {
			return fault.PlaceNotThere.New("pid %d, %s, runs no program, so it has no log", pid, view.Escaped(d.AgentID))
		}
		log, err := newAgentLog(pid, a.stdout)
		if err != nil {
			return err
		}
		defer closeInto(&err, closer(log.close))
		if _, err := os.Stat(log.path); errors.Is(err, fs.ErrNotExist) {
			return fault.PlaceNotThere.New("there is no log at %s: the kernel may keep its state elsewhere; set PWOS_STATE_DIR to what it has", log.path)
		}
		if _, err := log.open(log.path + ".1"); err != nil { // copy goes on with the current one
			return err
		}
		if err := log.copyLast(lines); err != nil || !follow {
			return err
		}
		return a.tailLog(ctx, c, log, pid)
	})
}

// tailLog shows the log until the process has ended.
func (a *app) tailLog(ctx context.Context, c *client.Client, log *agentLog, pid int64) (err error) {
	options, err := a.options()
	if err != nil {
		return err
	}
	life, err := followLife(ctx, options, pid)
	if err != nil {
		return err
	}
	defer closeInto(&err, life)
	for pause := shortLook; ; {
		pause = life.pause(pause)
		if err := log.wait(ctx, pause, life.news); err != nil {
			return err
		}
		d, err := describe(ctx, c, pid)
		if err != nil {
			return err
		}
		if err := log.copy(); err != nil || view.Gone(&d) {
			return err
		}
	}
}

// closer is a function that closes something.
type closer func() error

// Close calls the function.
func (c closer) Close() error { return c() }
