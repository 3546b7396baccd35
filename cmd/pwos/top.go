package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newTop(a *app) *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch the processes live, kill them or take their grants away",
		Long: `top shows the processes as ps does, again and again, and lets one be chosen:

  up, down, j, k    choose a process
  K                 kill it and its descendants, once that is confirmed with y
  R                 take away what it was granted, likewise
  q, Ctrl-C         quit

It needs a terminal; "pwos ps" is for pipes. Each look is a few calls, each with an
entry of its own in the journal.`,
		Example: `  pwos top
  pwos top --every 5s`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return usage(cmd, fmt.Errorf("--every is at least 100ms, not %v", every))
			}
			if !a.stdinTerminal() || !a.stdoutTerminal() {
				return usage(cmd, errors.New(`top needs a terminal for stdin and stdout; "pwos ps" lists the processes once, "pwos ps --json" for programs`))
			}
			return a.top(cmd.Context(), every)
		},
	}
	cmd.Flags().DurationVar(&every, "every", time.Second, "how long to wait between two looks")
	return cmd
}

// What is written to a terminal to have the screen, and to give it back. Lines do not wrap: how wide a character is only the
// terminal knows, and a line that became two would put the mark of the chosen process beside another.
const (
	takeScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, without a cursor
	giveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// top has the terminal until the user quits, ctx ends, or the kernel is gone. On every way out the terminal is what it was.
func (a *app) top(ctx context.Context, every time.Duration) error {
	ctx, stop := untilHangup(ctx)
	defer stop()
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) (err error) {
		s := &screen{app: a, client: c}
		if err := s.look(ctx); err != nil { // what cannot be asked at all is said on the usual screen
			return err
		}
		fd := int(a.stdin.Fd())
		before, err := term.MakeRaw(fd)
		if err != nil {
			return fmt.Errorf("take over terminal: %w", err)
		}
		defer func() {
			if _, writeErr := a.stdout.WriteString(giveScreen); writeErr != nil {
				err = errors.Join(err, fmt.Errorf("give back screen: %w", writeErr))
			}
			if restoreErr := term.Restore(fd, before); restoreErr != nil {
				err = errors.Join(err, fmt.Errorf("give back terminal: %w", restoreErr))
			}
		}()
		if _, err := a.stdout.WriteString(takeScreen); err != nil {
			return fmt.Errorf("take over screen: %w", err)
		}
		return s.live(ctx, every)
	})
}

// live shows and obeys until the end.
func (s *screen) live(ctx context.Context, every time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	in, err := newPatientFile(s.app.stdin)
	if err != nil {
		cancel()
		return err
	}
	keys := make(chan key)
	var reader sync.WaitGroup
	reader.Go(func() { readKeys(ctx, in, keys) })
	defer func() {
		cancel()
		_ = in.SetReadDeadline(time.Time{}) // stops the reader; that it was stopped before is fine
		reader.Wait()
		err = errors.Join(err, in.Close())
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := s.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-resized:
			continue
		case <-tick.C:
			err = s.look(ctx)
		case k, open := <-keys:
			if !open || k == keyQuit && s.Asking == 0 {
				return nil
			}
			err = s.press(ctx, k)
		}
		if err != nil {
			return err
		}
	}
}

// key is a key that was pressed: its character, or one of these.
type key rune

const (
	keyUp   key = -1
	keyDown key = -2
	keyQuit key = 'q'

	keyCtrlC key = 3
)

// readKeys passes on what is typed until in ends or ctx does, and then closes to. The kernel of the system hands over what
// one key sends in one piece, so an escape character that ends a piece is the key Escape.
func readKeys(ctx context.Context, in io.Reader, to chan<- key) {
	defer close(to)
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		for _, k := range keysOf(buf[:n]) {
			select {
			case to <- k:
			case <-ctx.Done():
				return
			}
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// keysOf takes apart what a terminal sends. Sequences that are none of ours are left out as a whole.
func keysOf(typed []byte) []key {
	var keys []key
	for i := 0; i < len(typed); i++ {
		c := typed[i]
		if c != 0x1b || i+1 == len(typed) || typed[i+1] != '[' && typed[i+1] != 'O' {
			if key(c) == keyCtrlC {
				c = byte(keyQuit)
			}
			keys = append(keys, key(c))
			continue
		}
		// The sequence ends with a character from @ on.
		for i += 2; i < len(typed) && typed[i] < '@'; i++ {
		}
		if i < len(typed) && typed[i] == 'A' {
			keys = append(keys, keyUp)
		} else if i < len(typed) && typed[i] == 'B' {
			keys = append(keys, keyDown)
		}
	}
	return keys
}

// screen is the terminal that top has taken over.
type screen struct {
	app    *app
	client *client.Client

	view.Top
}

// look asks the kernel how things stand.
func (s *screen) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, usualTimeout, errTimeout)
	defer cancel()
	clock, err := invokeAs(ctx, s.client, schema.ClockGet, &schema.ClockGetInput{})
	if err != nil {
		return err
	}
	if s.Metrics, err = invokeAs(ctx, s.client, schema.AuditMetrics, &schema.AuditMetricsInput{}); err != nil {
		return err
	}
	processes, err := listProcesses(ctx, s.client, nil)
	if err != nil {
		return err
	}
	processes = slices.DeleteFunc(processes, func(p view.Process) bool { return p.State == view.Terminated })
	if err := withBudgets(ctx, s.client, processes); err != nil {
		return err
	}
	s.Tick, s.Processes, s.At = clock.Tick, view.Tree(processes), time.Now()
	s.Choose(0)
	s.Tokens = make(map[int64]schema.Value)
	for _, p := range s.Visible() {
		token, err := tokenOf(ctx, s.client, &p)
		if err != nil {
			return err
		}
		s.Tokens[p.PID] = token
	}
	return nil
}

// press does what a key asks for.
func (s *screen) press(ctx context.Context, k key) error {
	if ask := s.Asking; ask != 0 {
		s.Asking = 0
		if k != 'y' && k != 'Y' {
			s.Say("nothing was done")
			return nil
		}
		return s.act(ctx, key(ask))
	}
	s.Said = ""
	switch k {
	case keyUp, 'k':
		s.Choose(-1)
		return s.look(ctx)
	case keyDown, 'j':
		s.Choose(1)
		return s.look(ctx)
	case 'K', 'R':
		if s.Chosen != 0 {
			s.Asking = rune(k)
		}
	}
	return nil
}

// act kills the chosen process, or takes its grant away. That the kernel refuses is shown and not the end.
func (s *screen) act(ctx context.Context, what key) error {
	ctx, cancel := context.WithTimeoutCause(ctx, usualTimeout, errTimeout)
	defer cancel()
	pid, did := s.Chosen, "killed"
	var err error
	if what == 'K' {
		s.Say(fmt.Sprintf("killing pid %d ...", pid))
		if err := s.draw(); err != nil {
			return err
		}
		reason := "killed from top"
		_, err = invoke(ctx, s.client, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: pid, Reason: &reason})
	} else {
		did = "took the grant away from"
		_, err = invoke(ctx, s.client, schema.CapabilityRevoke.Type, &schema.RevokeInput{PID: pid})
	}
	if client.Answered(err) != nil {
		s.Said, s.Loud = view.Escaped(err.Error()), true
	} else if err != nil {
		return err
	} else {
		s.Say(fmt.Sprintf("%s pid %d", did, pid))
	}
	return s.look(ctx)
}

// draw writes the whole screen, in one piece so that nothing flickers.
func (s *screen) draw() error {
	width, height := s.size()
	s.Rows = max(height-5, 1)
	s.Choose(0)
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for i, line := range s.Lines(width, height, s.app.style) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	if _, err := s.app.stdout.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write screen: %w", err)
	}
	return nil
}

// size is that of the terminal; one that does not tell is taken for the usual.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.app.stdout.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}
