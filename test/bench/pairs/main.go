// Command pairs measures what it costs to run a program inside: go run ./test/bench/pairs -help
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
)

const usage = `pairs runs the same work outside and inside kernels, in turns, so that each sees the same
machine. A kernel is that of a directory with pwos and pwos-front, as go build makes them; of
two, the first is the one to compare with.

  go build -o new/ ./cmd/...
  go run ./test/bench/pairs new                # against outside
  go run ./test/bench/pairs base new           # and against an older build
  go run ./test/bench/pairs -only start -rounds 100 base new

The work:
%s
wall is the median of the rounds, and ratio that to outside. The rest is processor time a
round, the mean: of the command and what it starts, which inside is the client, of the kernel,
and of the processes that the kernel starts.

Flags:
`

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
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
		fmt.Fprintln(os.Stderr, "pairs:", err)
		return 1
	}
	return 0
}

// measurement is what the command line asks for.
type measurement struct {
	work   []work
	builds []string // directories with pwos
	rounds int
	dir    string // where its temporary directory is made
	source source
}

// parse reads the command line. It writes an error, or the help, to stderr.
func parse(args []string, stderr io.Writer) (*measurement, error) {
	m := &measurement{work: works}
	flags := flag.NewFlagSet("pairs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, usage, workLines())
		flags.PrintDefaults()
	}
	flags.IntVar(&m.rounds, "rounds", 40, "how many rounds each work gets")
	flags.StringVar(&m.dir, "dir", ".", "the `directory` for the files, which are removed at the end. Agents do not see the machine's /tmp")
	flags.StringVar(&m.source.repository, "repository", ".", "the git `repository` to clone")
	flags.StringVar(&m.source.npm, "npm", "", "a `directory` with package.json, package-lock.json and, in npm-cache, what npm ci needs; without it npm is left out")
	flags.Func("only", "only the named `work`, separated by commas", func(names string) error {
		m.work = nil
		for name := range strings.SplitSeq(names, ",") {
			w, ok := find(name)
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
	err := m.check(flags.Args())
	if err != nil {
		fmt.Fprintln(stderr, "pairs:", err)
	}
	return m, err
}

// check makes the paths absolute, since each command runs in a directory of its own.
func (m *measurement) check(builds []string) error {
	if n := len(builds); n < 1 || n > 2 {
		return fmt.Errorf("one or two directories with pwos are required, not %d", n)
	}
	if m.rounds <= 0 {
		return errors.New("-rounds must be greater than 0")
	}
	m.builds = builds
	for _, path := range []*string{&m.dir, &m.source.repository, &m.source.npm, &m.builds[0], &m.builds[len(m.builds)-1]} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("find directory: %w", err)
		}
		*path = abs
	}
	return nil
}

// run measures, and writes a table. It leaves no process and no file, also if ctx ends.
func (m *measurement) run(ctx context.Context, stdout io.Writer) (err error) {
	dir, err := os.MkdirTemp(m.dir, "pairs-")
	if err != nil {
		return fmt.Errorf("make temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sides := []*side{{name: "outside", dir: filepath.Join(dir, "outside")}}
	for i, build := range m.builds {
		s := &side{name: filepath.Base(build), dir: filepath.Join(dir, fmt.Sprint("inside", i)), pwos: filepath.Join(build, "pwos")}
		defer func() { err = errors.Join(err, s.end()) }()
		sides = append(sides, s)
	}
	for _, s := range sides {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	out := tabwriter.NewWriter(stdout, 8, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "work\t\twall ms\tratio\tcpu ms\tclient\tkernel\tchildren\t")
	for _, w := range m.work {
		if w.name == "npm" && m.source.npm == "" {
			continue
		}
		if err := m.measure(ctx, w, sides); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		for _, s := range sides {
			wall := s.wall()
			fmt.Fprintf(out, "%s\t%s\t%.1f\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", w.name, s.name, ms(wall), float64(wall)/float64(sides[0].wall()),
				s.each(s.client+s.kernel+s.children), s.each(s.client), s.each(s.kernel), s.each(s.children))
		}
		if err := out.Flush(); err != nil { // each work as it is known
			return fmt.Errorf("write output: %w", err)
		}
	}
	return nil
}

// measure does a work once on each side without measuring, and then in rounds.
func (m *measurement) measure(ctx context.Context, w work, sides []*side) error {
	for _, s := range sides {
		if err := s.prepare(ctx, w, m.source); err != nil {
			return err
		}
		if err := s.do(ctx, w, 0); err != nil {
			return err
		}
		if err := s.reset(ctx); err != nil {
			return err
		}
	}
	for round := range m.rounds {
		for i := range sides {
			if err := sides[(i+round)%len(sides)].do(ctx, w, round+1); err != nil {
				return err
			}
		}
	}
	for _, s := range sides {
		if err := s.sum(ctx); err != nil {
			return err
		}
	}
	return nil
}
