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
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/outlog"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// agentLog follows a program's standard error in the log files that the kernel writes.
type agentLog struct {
	path string
	file *os.File // nil: no file is open
	at   int64    // position in the log of what is read next
	out  io.Writer

	missed func(bytes int64) // is told of output that is gone from the log; nil: nobody is
}

// newAgentLog returns a follower of a process's log that writes to out. It escapes control characters if out is a terminal.
func newAgentLog(pid int64, out *os.File) (*agentLog, error) {
	path, err := cli.AgentLogFile(pid)
	if err != nil {
		return nil, err
	}
	l := &agentLog{path: path, out: out}
	if term.IsTerminal(int(out.Fd())) {
		l.out = &view.PlainWriter{To: out}
	}
	return l, nil
}

// open opens the file at path, after its header, and returns the position in the log where it begins. It reports whether the file
// exists.
func (l *agentLog) open(path string) (start int64, found bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("open log: %w", err)
	}
	start, length, err := outlog.Header(file)
	if err == nil {
		_, err = file.Seek(length, io.SeekStart)
	}
	if err != nil {
		return 0, false, errors.Join(fmt.Errorf("open log: %w", err), file.Close())
	}
	l.file = file
	return start, true, nil
}

// next opens the file that continues the log: the current one, or the older one if the kernel has rotated the log twice. It reports
// whether there is one.
func (l *agentLog) next() (bool, error) {
	start, found, err := l.open(l.path)
	if err != nil || !found {
		return false, err
	}
	if start > l.at {
		if err := l.close(); err != nil {
			return false, err
		}
		older, found, err := l.open(l.path + ".1")
		if err != nil {
			return false, err
		}
		if !found {
			return l.next()
		}
		start = older
	}
	l.goOn(start)
	return true, nil
}

// oldest opens the older file, if there is one.
func (l *agentLog) oldest() error {
	start, found, err := l.open(l.path + ".1")
	if found {
		l.goOn(start)
	}
	return err
}

// goOn continues at a position in the log.
func (l *agentLog) goOn(start int64) {
	if gone := start - l.at; gone > 0 && l.missed != nil {
		l.missed(gone)
	}
	l.at = start
}

// copy writes the output since the last call. If the kernel has rotated the log, it continues with the next file.
func (l *agentLog) copy() error {
	if l.file == nil {
		if found, err := l.next(); err != nil || !found {
			return err
		}
	}
	for {
		// This check precedes the read: after the rotation nothing is appended to the old file.
		moved, err := l.moved()
		if err != nil {
			return err
		}
		n, err := io.Copy(l.out, l.file)
		l.at += n
		if err != nil {
			return fmt.Errorf("show log: %w", err)
		}
		if !moved {
			return nil
		}
		if err := l.close(); err != nil {
			return err
		}
		if found, err := l.next(); err != nil || !found {
			return err
		}
	}
}

// copyLast copies only the last lines of the log; nil means all. An incomplete line counts as one.
func (l *agentLog) copyLast(lines *int64) error {
	if lines == nil {
		return l.copy()
	}
	out := l.out
	var all bytes.Buffer // at most two mebibytes
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

// lastLines returns the last lines of text.
func lastLines(text []byte, lines int64) []byte {
	begin := len(text)
	for ; lines > 0 && begin > 0; lines-- {
		begin = bytes.LastIndexByte(text[:begin-1], '\n') + 1
	}
	return text[begin:]
}

// moved reports whether the open file is a rotated one. If the kernel has taken back a cut line, it goes back too.
func (l *agentLog) moved() (bool, error) {
	own, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	here, err := l.file.Seek(0, io.SeekCurrent)
	if back := here - own.Size(); err == nil && back > 0 {
		_, err = l.file.Seek(-back, io.SeekCurrent)
		l.at -= back
	}
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	current, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) { // during the rotation
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	return !os.SameFile(own, current), nil
}

// wait shows the log as it grows, until an event is signalled, the pause is over, or ctx ends.
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

// close closes the open file, if any.
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

// life signals events of processes, which it receives on its own connection. On a signal, its owner reads the process's
// descriptor: one journal entry per event, instead of one per poll.
type life struct {
	news chan struct{} // has room for one signal

	client  *client.Client
	in      *io.PipeWriter
	cancel  context.CancelFunc
	stream  sync.WaitGroup
	refused atomic.Bool
	half    []byte // an incomplete line of the kernel's output

	mu        sync.Mutex
	restarted []schema.Descriptor // descriptors from restart events, until restarts returns them
}

// followLife subscribes to the events of a process, or of all if pid is 0. The first signal means that the subscription is
// active: no later event is missed.
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
			l.refused.Store(true) // the kernel has closed the connection; the next call returns the error
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
	_, _ = frames.Write(frame) // fails if the stream has ended, which was signalled
	return l, nil
}

// letGo is the input of a stream. It lets the stream stop reading once the kernel has closed the connection.
type letGo struct{ *io.PipeReader }

// SetReadDeadline ends reading at once: a stream sets only deadlines that have passed.
func (l letGo) SetReadDeadline(time.Time) error { return l.Close() }

// Write accepts the kernel's output, split at any byte.
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

// hear handles one line. After an error the processes are polled.
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

// restarts returns and removes the descriptors from restart events. Their Exit is the end before the restart.
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
	default: // a signal is pending
	}
}

// Bounds of the poll interval of a process without events.
const (
	shortLook = 5 * time.Millisecond
	longLook  = 250 * time.Millisecond
)

// pause returns the maximum wait for an event. Without a subscription it is the next poll interval, which grows from last.
func (l *life) pause(last time.Duration) time.Duration {
	if !l.refused.Load() {
		return time.Minute
	}
	return min(max(last, shortLook)*3/2, longLook)
}

// Close ends the subscription.
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
		Use:   "logs AGENT",
		Short: "show what an agent wrote to standard error",
		Long: `logs prints what an agent's program wrote to standard error. The kernel keeps the
last one to two mebibytes by whole lines, across restarts and after its end; logs says on
stderr how much older output is gone. Where output could not be written to the log, a line of
it says how much is missing. --lines 20 prints the last 20
lines. --follow continues until the process has ended, or until interrupted.

logs reads the files in the state directory, so PWOS_STATE_DIR must
be the same as for the kernel.

Exit status: 4 no process ever had this name or PID, or it runs no program.`,
		Example: `  pwos logs planner
  pwos logs -n 20 7
  pwos logs -f planner`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var pid int64
			if err := a.Agent(cmd, args[0], arg.Who{}, &pid); err != nil {
				return cli.Usage(cmd, err)
			}
			return a.logs(cmd.Context(), &pid, lines, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the log until the process has ended")
	cmd.Flags().VarP(cli.Number(&lines, 0), "lines", "n", "print only this many of the last lines (default: all)")
	return cmd
}

// logs prints the last lines of the log of a process, whose PID is known once a kernel is connected; nil means all. With follow it continues until the process has ended.
func (a *app) logs(ctx context.Context, named *int64, lines *int64, follow bool) error {
	limit := cli.UsualTimeout
	if follow {
		limit = 0
	}
	return a.WithKernel(ctx, limit, func(ctx context.Context, c *client.Client) (err error) {
		pid := *named
		d, err := cli.Describe(ctx, c, pid)
		if err != nil {
			return err
		}
		if d.Command == nil && d.AgentID != "" {
			return fault.PlaceNotThere.New("pid %d, %s, runs no program, so it has no log", pid, view.Escaped(d.AgentID))
		}
		log, err := newAgentLog(pid, a.Stdout)
		if err != nil {
			return err
		}
		defer cli.CloseInto(&err, cli.Closer(log.close))
		if _, err := os.Stat(log.path); errors.Is(err, fs.ErrNotExist) {
			return fault.PlaceNotThere.New("there is no log at %s: the kernel may keep its state elsewhere; set PWOS_STATE_DIR to the kernel's state directory", log.path)
		}
		if lines == nil {
			log.missed = func(bytes int64) {
				a.Say("%d bytes of older output are gone: the log keeps one to two mebibytes", bytes)
			}
		}
		if err := log.oldest(); err != nil {
			return err
		}
		if err := log.copyLast(lines); err != nil || !follow {
			return err
		}
		return a.tailLog(ctx, c, log, pid)
	})
}

// tailLog shows the log as it grows, until the process has ended.
func (a *app) tailLog(ctx context.Context, c *client.Client, log *agentLog, pid int64) (err error) {
	options, err := a.Options()
	if err != nil {
		return err
	}
	life, err := followLife(ctx, options, pid)
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, life)
	for pause := shortLook; ; {
		pause = life.pause(pause)
		if err := log.wait(ctx, pause, life.news); err != nil {
			return err
		}
		d, err := cli.Describe(ctx, c, pid)
		if err != nil {
			return err
		}
		if err := log.copy(); err != nil || view.Ended(&d) {
			return err
		}
	}
}
