package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newLogs(a *app) *cobra.Command {
	var follow bool
	var lines *int64
	cmd := &cobra.Command{
		Use:   "logs AGENT",
		Short: "show what an agent wrote to standard error, or showed at a terminal",
		Long: `logs prints what an agent's program wrote to standard error, and of one that ran at a terminal
what that showed; what went to other pipes and files of its caller is in no log. The kernel keeps the
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
