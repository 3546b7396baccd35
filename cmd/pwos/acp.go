package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
	"github.com/promptware-os/pwos/door/acp"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
)

func newACP(a *app) *cobra.Command {
	f := runFlags{acp: true, noTTY: true}
	cmd := &cobra.Command{
		Use:   "acp [flags] HOST [ARGS...]",
		Short: "run an agent host for an editor that speaks ACP",
		Long: `acp is an agent of the Agent Client Protocol on standard input and output, for Zed, JetBrains,
Neovim and other editors. It is run -- HOST [ARGS...]: the same sandbox, profile, steps, login and
home, with the same flags, which go before HOST.

What the host asks permission for, the kernel decides, by the same rules as its tools. The editor
reads and writes no file for the host, and runs nothing: the host uses its own tools, in its
sandbox. So it sees files as they are saved.

The kernel's own questions wait in "pwos approvals". With --ask the editor shows them too, and
what its user answers counts as a person's: give it only where the editor asks its user.

copilot, gemini, opencode and qwen speak it themselves; claude, codex and pi by an adapter, a package
of npm, which starts the host with its hook. See docs/doors.md for the settings of editors.`,
		Example: `  pwos acp gemini
  pwos acp --ask --profile worker claude
  pwos acp --dir /home/me/project --budget usd=5 opencode`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)), ValidArgs: preset.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := hostOf(f.line.Profile().Preset, args)
			if err == nil && host == nil {
				err = fmt.Errorf("%s is no agent host that pwos knows: --preset FILE declares one", args[0])
				if near := schema.Nearest(args[0], slices.Values(preset.Names())); near != "" {
					err = fmt.Errorf("%w; did you mean %s?", err, near)
				}
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			job, err := a.prepared(cmd, &f, args)
			if job == nil || err != nil {
				return err
			}
			return a.serveACP(cmd.Context(), job, host)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.ask, "ask", false, "the editor asks its user the kernel's questions, and the answers count")
	return cmd
}

// lastWords is the time that a host has to end after its editor has.
const lastWords = 10 * time.Second

// serveACP runs a host between its editor and the kernel.
func (a *app) serveACP(ctx context.Context, j *job, host *preset.Host) (err error) {
	theirIn, toHost, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("connect to %s: %w", host.Name, err)
	}
	fromHost, theirOut, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("connect to %s: %w", host.Name, errors.Join(err, theirIn.Close(), toHost.Close()))
	}
	inner := &app{App: new(cli.App), notes: a.notes, quit: a.quit}
	*inner.App = *a.App
	inner.Stdin, inner.Stdout = theirIn, theirOut
	gate := &acpGate{app: a, host: host, runs: make(chan struct{})}
	if s := j.input.Program.Sandbox; s.Named() != "off" && j.input.Program.Cwd != nil {
		gate.dirs = append([]string{*j.input.Program.Cwd}, s.Write...)
	}
	options := acp.Options{Host: host.Name, Reaches: gate.reaches, Decide: gate.decide, Note: a.Say}
	if !host.Hooked() {
		options.Ended = gate.ended
	}
	door := acp.New(options)
	serves, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a signal is the host's, which still speaks
	var workers sync.WaitGroup
	j.started = func(pid int64) {
		gate.pid = pid
		close(gate.runs)
		workers.Go(func() { a.endWithEditor(serves, door, pid) })
		if j.asks {
			workers.Go(func() { a.askInEditor(serves, door, pid) })
		}
	}
	served := make(chan error, 1)
	go func() { served <- door.Serve(serves, a.Stdin, a.Stdout, fromHost, toHost) }()
	err = inner.run(ctx, j)
	// A host that was not started has not let go of its ends.
	closing := errors.Join(theirIn.Close(), theirOut.Close())
	serving := <-served
	cancel()
	workers.Wait()
	return errors.Join(err, closing, serving, fromHost.Close())
}

// endWithEditor ends a host whose editor has ended, if it does not do so itself.
func (a *app) endWithEditor(ctx context.Context, door *acp.Door, pid int64) {
	select {
	case <-door.Left():
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(lastWords):
	case <-ctx.Done():
		return
	}
	reason := "its editor has ended"
	err := a.With(ctx, cli.UsualTimeout, a.DialRunning, func(ctx context.Context, c *client.Client) error {
		_, err := cli.InvokeAs(ctx, c, schema.SyscallTerminate, &schema.TerminateInput{TargetPID: pid, Reason: &reason})
		return err
	})
	if err != nil && ctx.Err() == nil {
		a.Say(`end pid %d: %v: "pwos kill %d" tries again`, pid, err, pid)
	}
}

// askInEditor has the editor's user asked the questions of an agent.
func (a *app) askInEditor(ctx context.Context, door *acp.Door, pid int64) {
	c, err := a.DialRunning(ctx)
	if err != nil {
		a.Say("questions are not shown in the editor: %v", err)
		return
	}
	screen := &acpScreen{ctx: ctx, app: a, door: door, answers: make(chan panel.Answer), asked: make(map[string]context.CancelFunc)}
	stop := a.showQuestionsOn(ctx, c, newQuestions(pid, screen, screen.answers))
	<-ctx.Done()
	stop()
	screen.workers.Wait()
	_ = c.Close() // nothing is in flight
}
