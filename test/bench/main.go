// Command bench measures a kernel beside a raw line echo: go run ./test/bench -help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/test/bench/load"
	"github.com/promptware-os/pwos/view"
)

const usage = `bench drives a kernel and, in alternating rounds, a process that does nothing but echo
each line over the same kind of socket. Both get the same load from the same code, and
every answer is decoded strictly; so the ratio is the cost of the kernel, whatever the
machine. The kernel is this program's own, in a temporary directory that is removed
afterwards. TMPDIR chooses the disk.

  go run ./test/bench                                  # all of the work
  go run ./test/bench -only ping-1,set-1 -rounds 1

The work:
%s
Rates are the median of the rounds, in answers a second; latencies are over all rounds.

Flags:
`

// The first argument makes this program one of the servers that it measures.
const (
	asKernel = "be-the-kernel"
	asEcho   = "be-the-echo"
)

func main() {
	daemon.Shim() // must run first, as in every program that is a daemon
	os.Exit(start(os.Args[1:]))
}

func start(args []string) int {
	if len(args) > 0 {
		switch args[0] {
		case asKernel:
			return daemon.Main(args[1:], os.Getenv, os.Stdout, os.Stderr)
		case asEcho:
			return load.EchoMain(args[1:], os.Stdin, os.Stdout, os.Stderr)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	m, err := parse(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := m.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// measurement is what the command line asks for.
type measurement struct {
	work    []load.Workload
	config  load.Config
	running string // the runtime directory of the kernel; "": one of its own
}

// parse reads the command line. It writes an error, or the help, to stderr.
func parse(args []string, stderr io.Writer) (*measurement, error) {
	m := &measurement{work: load.Workloads()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, usage, workLines())
		flags.PrintDefaults()
	}
	flags.DurationVar(&m.config.Duration, "duration", time.Second, "how long one round of one server takes")
	flags.IntVar(&m.config.Rounds, "rounds", 5, "how many rounds each server gets")
	flags.BoolVar(&m.config.Lean, "lean", false, "decode the first answer of a connection fully; of later answers compare only the bytes that identify them")
	flags.StringVar(&m.running, "running", "", "measure the kernel that runs in this runtime `directory`. Its journal keeps each call: the whole set adds hundreds of megabytes")
	flags.Func("only", "only the named `work`, separated by commas", func(names string) error {
		m.work = nil
		for name := range strings.SplitSeq(names, ",") {
			w, ok := load.Find(name)
			if !ok {
				return fmt.Errorf("no work %q; choose from:\n%s", name, workLines())
			}
			m.work = append(m.work, w)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case m.config.Duration <= 0 || m.config.Rounds <= 0:
		err = errors.New("-duration and -rounds must be greater than 0")
	case m.running != "":
		m.running, err = filepath.Abs(m.running)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	return m, err
}

func workLines() string {
	var b strings.Builder
	for _, w := range load.Workloads() {
		fmt.Fprintf(&b, "  %-10s %s\n", w.Name, w.Description)
	}
	return b.String()
}

// run measures, and writes a table. It leaves no process and no file, also if ctx ends.
func (m *measurement) run(ctx context.Context, stdout io.Writer) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	if m.running == "" {
		dir, err := os.MkdirTemp("", "pwos-bench-")
		if err != nil {
			return fmt.Errorf("make temporary directory: %w", err)
		}
		return errors.Join(m.own(ctx, self, dir, stdout), os.RemoveAll(dir))
	}
	return m.measure(ctx, self, m.running, stdout)
}

// own measures a kernel in dir, and then kills it, since its state is discarded.
func (m *measurement) own(ctx context.Context, self, dir string, stdout io.Writer) (err error) {
	run, config := filepath.Join(dir, "run"), filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	kernel, err := client.Launch(ctx, client.Command{
		Path: self, Args: []string{asKernel, "--idle-timeout=1m"}, // it ends even if this process is killed
		Env: []string{"HOME=" + dir, "PWOS_STATE_DIR=" + filepath.Join(dir, "state"), "PWOS_CONFIG=" + config},
	}, run)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, kernel.Kill())
		_ = kernel.Wait() // its status is that of the kill
	}()
	return m.measure(ctx, self, run, stdout)
}

// measure measures the kernel that runs in the runtime directory run.
func (m *measurement) measure(ctx context.Context, self, run string, stdout io.Writer) (err error) {
	c, err := client.Dial(ctx, client.Options{RuntimeDir: run})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	echo, err := load.StartEcho(ctx, self, asEcho)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, echo.Close()) }()
	m.config.Kernel, m.config.Echo, m.config.Greet = c.Places().KernelSocket, echo.Socket, c.Greet
	out := tabwriter.NewWriter(stdout, 10, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "work\tkernel/s\techo/s\tratio\tkernel p50\tp99\techo p50\tp99\t")
	for _, w := range m.work {
		r, err := load.Run(ctx, w, m.config)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\t%.0f\t%.0f\t%.2f\t%s\t%s\t%s\t%s\t\n", w.Name, r.Kernel.PerSecond, r.Echo.PerSecond, r.Ratio(),
			view.Brisk(r.Kernel.P50), view.Brisk(r.Kernel.P99), view.Brisk(r.Echo.P50), view.Brisk(r.Echo.P99))
		if err := out.Flush(); err != nil { // each row as it is known
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}
