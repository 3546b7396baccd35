package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/internal/bench"
)

// benchFlags are the flags of `pwos bench`.
type benchFlags struct {
	duration time.Duration
	rounds   int
	only     []string
}

func newBench(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure the running kernel beside a raw line echo",
		Long: `bench drives the running kernel and, beside it in turns, a server that does nothing
but send each line back over the same kind of socket. Both get the same load from the
same code, and every answer is checked; so the ratio is what the kernel costs, whatever
the machine. Each call is an entry of the kernel's journal, and stays there: the whole
set adds hundreds of megabytes to it, one round of ping-1 and set-1 some ten.

The work:
` + workLines() + `
Rates are the median of the rounds, in answers a second; latencies are over all rounds.`,
		Example: `  pwos bench
  pwos bench --only ping-1,set-1 --rounds 1
  pwos bench --json --duration 200ms`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			work, err := f.work()
			if err != nil {
				return usage(cmd, err)
			}
			return a.bench(cmd.Context(), work, f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.duration, "duration", time.Second, "how long one round of one server takes")
	flags.IntVar(&f.rounds, "rounds", 5, "how many rounds each server gets")
	flags.StringSliceVar(&f.only, "only", nil, "only the named work")
	return cmd
}

func workLines() string {
	var b strings.Builder
	for _, w := range bench.Workloads() {
		fmt.Fprintf(&b, "  %-10s %s\n", w.Name, w.Description)
	}
	return b.String()
}

// work finds what is to be measured; its errors are wrong usage.
func (f *benchFlags) work() ([]bench.Workload, error) {
	if f.duration <= 0 || f.rounds <= 0 {
		return nil, fmt.Errorf("--duration and --rounds must be more than nothing")
	}
	if len(f.only) == 0 {
		return bench.Workloads(), nil
	}
	var chosen []bench.Workload
	for _, name := range f.only {
		w, ok := bench.Find(name)
		if !ok {
			return nil, fmt.Errorf("there is no work %q; there is:\n%s", name, strings.TrimRight(workLines(), "\n"))
		}
		chosen = append(chosen, w)
	}
	return chosen, nil
}

func (a *app) bench(ctx context.Context, work []bench.Workload, f benchFlags) (err error) {
	ctx, cancel := a.bound(ctx, 0)
	defer cancel()
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	self, err := daemonCommand()
	if err != nil {
		return err
	}
	echo, err := bench.StartEcho(ctx, self.Path, "--mode=echo")
	if err != nil {
		return err
	}
	defer closeInto(&err, echo)

	t := new(table)
	t.header("work", "kernel/s", "echo/s", "ratio", "kernel p50", "p99", "echo p50", "p99")
	for _, w := range work {
		if !a.wantsJSON() {
			a.say("measuring %s for %v", w.Name, 2*time.Duration(f.rounds)*f.duration)
		}
		r, err := bench.Run(ctx, w, bench.Config{
			Kernel: c.Places().KernelSocket, Echo: echo.Socket, Duration: f.duration, Rounds: f.rounds,
			Greet: c.Greet,
		})
		if err != nil {
			return err
		}
		if a.wantsJSON() {
			if err := a.printLine(resultObject(r)); err != nil {
				return err
			}
			continue
		}
		t.row(w.Name, perSecond(r.Kernel), perSecond(r.Echo), fmt.Sprintf("%.2f", r.Ratio()),
			brisk(r.Kernel.P50), brisk(r.Kernel.P99), brisk(r.Echo.P50), brisk(r.Echo.P99))
	}
	return t.write(a.stdout)
}

func perSecond(s bench.Side) string { return fmt.Sprintf("%.0f", s.PerSecond) }

// brisk is a latency with three digits or so.
func brisk(d time.Duration) string { return d.Round(100 * time.Nanosecond).String() }

func resultObject(r bench.Result) []byte {
	side := func(s bench.Side) []byte {
		return object(nil).
			number("per_second", s.PerSecond, 0).
			number("p50_us", float64(s.P50)/1e3, 1).
			number("p99_us", float64(s.P99)/1e3, 1).close()
	}
	return object(nil).
		text("work", r.Work.Name).
		integer("connections", int64(r.Work.Connections)).
		integer("outstanding", int64(r.Work.Outstanding)).
		raw("kernel", side(r.Kernel)).
		raw("echo", side(r.Echo)).
		number("ratio", r.Ratio(), 3).close()
}
