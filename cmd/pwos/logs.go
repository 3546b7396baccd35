package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema/fault"
)

func newLogs(a *app) *cobra.Command {
	var follow bool
	var last numberFlag
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
			lines, err := last.given(cmd, "lines", 0)
			if err != nil {
				return usage(cmd, err)
			}
			return a.logs(cmd.Context(), pid, lines, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the process has ended")
	cmd.Flags().Int64VarP(&last.value, "lines", "n", 0, "only the last lines, so many (default: all)")
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
			return fault.PlaceNotThere.New("pid %d, %s, runs no program, so it has no log", pid, escaped(d.AgentID))
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
		if err := log.copy(); err != nil || gone(&d) {
			return err
		}
	}
}

// closer is a function that closes something.
type closer func() error

// Close calls the function.
func (c closer) Close() error { return c() }
