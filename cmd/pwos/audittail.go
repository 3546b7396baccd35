package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// auditTailFlags are the flags of `pwos audit tail`.
type auditTailFlags struct {
	pid, from, limit numberFlag
	every            time.Duration
}

func newAuditTail(a *app) *cobra.Command {
	var f auditTailFlags
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "follow the record live",
		Long: `tail prints each new entry of the journal as it comes, until interrupted: a line of
JSON each where stdout is no terminal. It looks every --every, and goes on at once
where there is more than it can get at a time. Each look is a call with an entry of
its own in the journal; those of this tail are not printed.`,
		Example: `  pwos audit tail
  pwos audit tail --pid 7
  pwos audit tail --from 1000 --limit 50
  pwos audit tail | jq -c 'select(.success | not)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := f.tail(cmd)
			if err != nil {
				return usage(cmd, err)
			}
			return a.auditTail(cmd.Context(), t)
		},
	}
	f.pid.add(cmd, "pid", "only calls of this process; 0 is the operator")
	f.from.add(cmd, "from", "number of the entry to begin with (default: what comes from now on)")
	f.limit.add(cmd, "limit", "end after this many entries (default: never)")
	cmd.Flags().DurationVar(&f.every, "every", 500*time.Millisecond, "how long to wait between two looks")
	return cmd
}

// tail follows the audit log.
type tail struct {
	pid, from, limit *int64
	every            time.Duration

	mark  string // correlation of the calls that look, by which their entries are known
	since int64
	shown int64
	out   auditFeed
}

// tail is what the command line asks for; its errors are wrong usage.
func (f *auditTailFlags) tail(cmd *cobra.Command) (*tail, error) {
	t := &tail{every: f.every, mark: "audit-tail-" + schema.NewStamper().NewID()}
	var err error
	if t.pid, err = f.pid.given(cmd, "pid", 0); err != nil {
		return nil, err
	}
	if t.from, err = f.from.given(cmd, "from", 1); err != nil {
		return nil, err
	}
	if t.limit, err = f.limit.given(cmd, "limit", 1); err != nil {
		return nil, err
	}
	if t.every < time.Millisecond {
		return nil, errors.New("--every must be at least 1ms")
	}
	return t, nil
}

func (a *app) auditTail(ctx context.Context, t *tail) error {
	t.out = newAuditFeed(a)
	if t.from != nil {
		t.since = *t.from - 1
	} else if err := a.withKernel(ctx, 0, t.toEnd); err != nil {
		return err
	}
	return a.withKernel(ctx, 0, t.follow)
}

// toEnd puts the tail at the end of the journal as it is.
func (t *tail) toEnd(ctx context.Context, c *client.Client) (err error) {
	t.since, err = journalEnd(ctx, c, t.mark)
	return err
}

// follow prints what comes until ctx ends or the limit is reached.
func (t *tail) follow(ctx context.Context, c *client.Client) error {
	pause := time.NewTicker(t.every)
	defer pause.Stop()
	limit := int64(listPage)
	for {
		// All processes are asked for, so that what was seen once is not read again.
		page, err := auditPage(ctx, c, schema.Metadata{Correlation: t.mark}, &schema.AuditLogInput{SinceSeq: &t.since, Limit: &limit})
		if err != nil {
			return err
		}
		for _, e := range page.entries {
			t.since = e.Seq
			if string(e.Correlation) == t.mark || t.pid != nil && e.PID != *t.pid {
				continue
			}
			if err := t.out.entry(&e); err != nil {
				return err
			}
			if t.shown++; t.limit != nil && t.shown == *t.limit {
				return nil
			}
		}
		if page.next != 0 {
			continue
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
