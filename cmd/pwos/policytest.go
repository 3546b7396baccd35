package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/policy"
)

func newPolicyTest(a *app) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "test [FILE…]",
		Short: "show what rules would have done to the calls of the journal",
		Long: `test judges the calls of agents that the journal has by rules, and reports for which of
them the verdict would be another one: "would deny", "would ask" or "would now allow", with the rule,
the syscall, how many calls there were, and the entry of the first. It needs no kernel,
may run while one writes, and changes nothing. Default: the rules beside the
configuration, and all of the journal.

What the journal does not keep of a call, rules do not see. Names beside a resource
that an agent has adopted are judged as they were written.

Exit status: 0 it is done, 2 the rules cannot be loaded.`,
		Example: `  pwos policy test
  pwos policy test new.cedar --since 24h
  pwos policy test --since 12000 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, after, err := sinceOf(since, time.Now())
			if err != nil {
				return usage(cmd, err)
			}
			set, err := a.policyOf(args)
			if err != nil {
				return err
			}
			return a.policyTest(cmd.Context(), set, from, after)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only calls of this last time, such as 24h, or from this entry on")
	return cmd
}

// sinceOf is the first entry and the first time that is meant, in Unix milliseconds.
func sinceOf(text string, now time.Time) (from uint64, after int64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	if seq, err := strconv.ParseUint(text, 10, 64); err == nil {
		return seq, 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, 0, fmt.Errorf("--since %q is neither a time such as 24h nor the number of an entry", text)
	}
	return 0, now.Add(-d).UnixMilli(), nil
}

func (a *app) policyTest(ctx context.Context, set *policy.Set, from uint64, after int64) error {
	forms, err := daemon.PolicyForms(client.ConfigFile(), os.Getenv)
	if err != nil {
		return err
	}
	dir, err := journalDir()
	if err != nil {
		return err
	}
	past, found := policy.NewPast(set, forms), new(policy.Findings)
	reader := journal.NewReader(nil, dir, journal.ReaderOptions{})
	read, err := a.judgePast(ctx, reader, past, found, from, after)
	if err := errors.Join(err, reader.Close()); err != nil {
		return err
	}
	a.say("%d entries read", read)
	if past.Withheld > 0 {
		a.say("%d calls are not on record with all that was sent: rules that look at the rest may say otherwise", past.Withheld)
	}
	t := new(table)
	t.header("verdict", "rule", "syscall", "calls", "first")
	for _, f := range found.List() {
		if a.wantsJSON() {
			o := object(nil).text("verdict", string(f.Change)).text("rule", f.Rule).text("type", f.Type)
			if err := a.printLine(o.integer("count", f.Count).integer("first", int64(f.First)).close()); err != nil {
				return err
			}
			continue
		}
		t.row(string(f.Change), escaped(f.Rule), escaped(f.Type), strconv.FormatInt(f.Count, 10), strconv.FormatUint(f.First, 10))
	}
	if a.wantsJSON() {
		return nil
	}
	return a.printTable(t)
}

// judgePast judges all entries, and shows at a terminal how far it is.
func (a *app) judgePast(ctx context.Context, r *journal.Reader, past *policy.Past, found *policy.Findings, from uint64, after int64) (read int, err error) {
	const step = 50_000
	watched := term.IsTerminal(int(a.stderr.Fd()))
	for {
		record, err := r.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			if watched && read >= step {
				fmt.Fprint(a.stderr, "\r\033[K")
			}
			return read, nil
		case err != nil:
			return read, err
		}
		read++
		if watched && read%step == 0 {
			fmt.Fprintf(a.stderr, "\rpwos: %d entries", read)
		}
		e := policy.Entry{PID: record.PID, Tick: record.Tick, Origin: record.Origin, Conn: record.Conn, Request: record.Request, Outcome: record.Outcome}
		change, typ, rule, err := past.Judge(&e, record.Seq >= from && record.Time >= after)
		if err != nil {
			return read, fmt.Errorf("read entry %d: %w", record.Seq, err)
		}
		if change != "" {
			found.Add(record.Seq, change, typ, rule)
		}
	}
}
