package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/view"
)

func newPolicyTest(a *app) *cobra.Command {
	var since arg.Point
	cmd := &cobra.Command{
		Use:   "test [FILE…]",
		Short: "replay the journal's calls against rules",
		Long: `test applies rules to the agents' calls in the journal, and reports the calls for which
the verdict would differ: "would deny", "would ask" or "would now allow", with the rule,
the syscall, the number of calls, and the entry of the first. It needs no kernel,
may run while one writes, and changes nothing. Default: the rules beside the
configuration, and all of the journal.

Rules do not see data that the journal does not keep. Names beside a resource
that an agent has adopted are judged as they were written.

Exit status: 0 done, 2 the rules cannot be loaded.`,
		Example: `  pwos policy test
  pwos policy test new.cedar --since 24h
  pwos policy test --since 12000 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := a.policyOf(args)
			if err != nil {
				return err
			}
			return a.policyTest(cmd.Context(), set, uint64(view.Deref(since.Seq)), view.Deref(since.Time))
		},
	}
	cmd.Flags().Var(cli.PointFlag(&since, 0), "since", "only calls of this last period, such as 24h, after a time, or from this entry on")
	return cmd
}

func (a *app) policyTest(ctx context.Context, set *policy.Set, from uint64, after int64) error {
	forms, err := offline.PolicyForms(client.ConfigFile(), os.Getenv)
	if err != nil {
		return err
	}
	dir, err := cli.JournalDir()
	if err != nil {
		return err
	}
	past, found := policy.NewPast(set, forms), new(policy.Findings)
	reader := journal.NewReader(nil, dir, journal.ReaderOptions{})
	read, err := a.judgePast(ctx, reader, past, found, from, after)
	if err := errors.Join(err, reader.Close()); err != nil {
		return err
	}
	a.Say("%d entries read", read)
	if past.Withheld > 0 {
		a.Say("the journal does not have all data of %d calls: rules that look at the missing data may decide otherwise", past.Withheld)
	}
	l := a.Listing("verdict", "rule", "syscall", "calls", "first")
	for _, f := range found.List() {
		o := view.Object(nil).Text("verdict", string(f.Change)).Text("rule", f.Rule).Text("type", f.Type).Integer("count", f.Count).Integer("first", int64(f.First))
		err := l.Add(o.Close(), string(f.Change), view.Escaped(f.Rule), view.Escaped(f.Type), strconv.FormatInt(f.Count, 10), strconv.FormatUint(f.First, 10))
		if err != nil {
			return err
		}
	}
	return l.End()
}

// judgePast applies the rules to the journal's entries. It shows its progress if stderr is a terminal.
func (a *app) judgePast(ctx context.Context, r *journal.Reader, past *policy.Past, found *policy.Findings, from uint64, after int64) (read int, err error) {
	const step = 50_000
	watched := term.IsTerminal(int(a.Stderr.Fd()))
	for {
		record, err := r.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			if watched && read >= step {
				fmt.Fprint(a.Stderr, "\r\033[K")
			}
			return read, nil
		case err != nil:
			return read, err
		}
		read++
		if watched && read%step == 0 {
			fmt.Fprintf(a.Stderr, "\rpwos: %d entries", read)
		}
		e := policy.Entry{PID: record.PID, Tick: record.Tick, Time: record.Time, Origin: record.Origin, Conn: record.Conn, Request: record.Request, Outcome: record.Outcome}
		change, typ, rule, err := past.Judge(&e, record.Seq >= from && record.Time >= after)
		if err != nil {
			return read, fmt.Errorf("read entry %d: %w", record.Seq, err)
		}
		if change != "" {
			found.Add(record.Seq, change, typ, rule)
		}
	}
}
