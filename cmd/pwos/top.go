package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/client"
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
			if !open || k == keyQuit && s.asking == 0 {
				return nil
			}
			err = s.press(ctx, k)
		}
		if err != nil {
			return err
		}
	}
}
