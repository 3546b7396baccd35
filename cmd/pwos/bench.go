package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/bench"
	"github.com/promptware-os/pwos/view"
)

// benchFlags are the flags of `pwos bench`.
type benchFlags struct {
	duration time.Duration
	rounds   int
	only     []string
	own      bool
	lean     bool
}

func newBench(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure the kernel beside a raw line echo",
		Long: `bench drives the running kernel and, in alternating rounds, a server that does nothing
but echo each line over the same kind of socket. Both get the same load from the
same code, and every answer is decoded strictly; so the ratio is the cost of the kernel,
whatever the machine. Each call stays in the kernel's journal for good: the
whole set adds hundreds of megabytes to it, one round of ping-1 and set-1 about ten.

--own measures a separate kernel instead, which it starts in a temporary directory and
removes afterwards. TMPDIR
chooses the disk; on a memory file system commands are faster than on a real disk.

The work:
` + workLines() + `
Rates are the median of the rounds, in answers a second; latencies are over all rounds.`,
		Example: `  pwos bench --own
  pwos bench --own --only ping-1,set-1 --rounds 1
  pwos bench --json --only ping-1 --duration 200ms`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			work, err := f.work()
			if err == nil && f.own {
				err = othersKernel(cmd)
			}
			if err != nil {
				return usage(cmd, err)
			}
			ctx, cancel := a.bound(cmd.Context(), 0)
			defer cancel()
			if f.own {
				return a.benchOwn(ctx, work, f)
			}
			return a.benchRunning(ctx, work, f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.duration, "duration", time.Second, "how long one round of one server takes")
	flags.IntVar(&f.rounds, "rounds", 5, "how many rounds each server gets")
	flags.StringSliceVar(&f.only, "only", nil, "only the named work")
	flags.BoolVar(&f.lean, "lean", false, "decode the first answer of a connection fully; of later answers compare only the bytes that identify them")
	flags.BoolVar(&f.own, "own", false, "measure a separate, temporary kernel, so that the running one's journal does not grow")
	return cmd
}

// othersKernel refuses --own together with a flag that selects the running kernel.
func othersKernel(cmd *cobra.Command) error {
	for _, name := range []string{"runtime-dir", "no-spawn", "identity"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s chooses the running kernel, but --own measures another one: leave one of them out", name)
		}
	}
	return nil
}

func workLines() string {
	var b strings.Builder
	for _, w := range bench.Workloads() {
		fmt.Fprintf(&b, "  %-10s %s\n", w.Name, w.Description)
	}
	return b.String()
}

// work returns the workloads to measure. Its errors are usage errors.
func (f *benchFlags) work() ([]bench.Workload, error) {
	if f.duration <= 0 || f.rounds <= 0 {
		return nil, fmt.Errorf("--duration and --rounds must be greater than 0")
	}
	if len(f.only) == 0 {
		return bench.Workloads(), nil
	}
	var chosen []bench.Workload
	for _, name := range f.only {
		w, ok := bench.Find(name)
		if !ok {
			return nil, fmt.Errorf("no workload %q; choose from:\n%s", name, strings.TrimRight(workLines(), "\n"))
		}
		chosen = append(chosen, w)
	}
	return chosen, nil
}

// benchRunning measures the running kernel, and starts one if none runs.
func (a *app) benchRunning(ctx context.Context, work []bench.Workload, f benchFlags) error {
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error { return a.bench(ctx, c, work, f) })
}

// benchOwn measures a kernel in a temporary directory, and removes both, also after an interrupt or a hang-up of the terminal.
func (a *app) benchOwn(ctx context.Context, work []bench.Workload, f benchFlags) error {
	ctx, stop := untilHangup(ctx)
	defer stop()
	dir, err := temporaryDir("pwos-bench-")
	if err != nil {
		return err
	}
	err = a.benchIn(ctx, dir, work, f)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // whatever it interrupted
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// benchIn measures a kernel in dir and then kills it, since its state is discarded.
func (a *app) benchIn(ctx context.Context, dir string, work []bench.Workload, f benchFlags) (err error) {
	start, cancel := a.bound(ctx, usualTimeout)
	defer cancel()
	daemon, err := launchIn(start, dir, "--idle-timeout=1m") // so that it ends even if this process is killed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, daemon.Kill(), quietWait(daemon)) }()
	c, err := client.Dial(ctx, ownOptions(dir))
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	return a.bench(ctx, c, work, f)
}

// bench measures the kernel that c is connected to.
func (a *app) bench(ctx context.Context, c *client.Client, work []bench.Workload, f benchFlags) (err error) {
	self, err := daemonCommand()
	if err != nil {
		return err
	}
	echo, err := bench.StartEcho(ctx, self.Path, "--mode=echo")
	if err != nil {
		return err
	}
	defer closeInto(&err, echo)

	l := a.listing("work", "kernel/s", "echo/s", "ratio", "kernel p50", "p99", "echo p50", "p99")
	for _, w := range work {
		if !a.wantsJSON() {
			a.say("measuring %s for %v", w.Name, 2*time.Duration(f.rounds)*f.duration)
		}
		r, err := bench.Run(ctx, w, bench.Config{
			Kernel: c.Places().KernelSocket, Echo: echo.Socket, Duration: f.duration, Rounds: f.rounds, Lean: f.lean,
			Greet: c.Greet,
		})
		if err != nil {
			return err
		}
		err = l.add(resultObject(r), w.Name, perSecond(r.Kernel), perSecond(r.Echo), fmt.Sprintf("%.2f", r.Ratio()),
			view.Brisk(r.Kernel.P50), view.Brisk(r.Kernel.P99), view.Brisk(r.Echo.P50), view.Brisk(r.Echo.P99))
		if err != nil {
			return err
		}
	}
	return l.end()
}

func perSecond(s bench.Side) string { return fmt.Sprintf("%.0f", s.PerSecond) }

func resultObject(r bench.Result) []byte {
	side := func(s bench.Side) []byte {
		return view.Object(nil).
			Number("per_second", s.PerSecond, 0).
			Number("p50_us", float64(s.P50)/1e3, 1).
			Number("p99_us", float64(s.P99)/1e3, 1).Close()
	}
	return view.Object(nil).
		Text("work", r.Work.Name).
		Integer("connections", int64(r.Work.Connections)).
		Integer("outstanding", int64(r.Work.Outstanding)).
		Raw("kernel", side(r.Kernel)).
		Raw("echo", side(r.Echo)).
		Number("ratio", r.Ratio(), 3).Close()
}
