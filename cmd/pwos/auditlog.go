package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// auditLogFlags are the flags of `pwos audit log`.
type auditLogFlags struct {
	pid, since, limit, last numberFlag
	typ, correlation        string
	after, before           string
}

func newAuditLog(a *app) *cobra.Command {
	var f auditLogFlags
	cmd := &cobra.Command{
		Use:   "log",
		Short: "print the record, oldest entries first",
		Long: `log prints the entries of the journal, oldest first: a line of JSON each where stdout
is no terminal. --last 20 prints what just happened: the newest 20 of those that the
other flags ask for. It asks for page after page until --limit, or until the end; each
page is a call too, with an entry of its own, which --last leaves out.`,
		Example: `  pwos audit log --last 20
  pwos audit log --last 5 --type Memory.Set
  pwos audit log --pid 7 --since 1000
  pwos audit log --type Memory.Set --after 15m
  pwos audit log --after 2026-11-21T08:00:00Z --before 2026-11-21T09:00:00Z
  pwos audit log | jq -c 'select(.success | not)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var in schema.AuditLogInput
			var err error
			if in.PID, err = f.pid.given(cmd, "pid", 0); err != nil {
				return usage(cmd, err)
			}
			if in.SinceSeq, err = f.since.given(cmd, "since", 0); err != nil {
				return usage(cmd, err)
			}
			if in.Limit, err = f.limit.given(cmd, "limit", 1); err != nil {
				return usage(cmd, err)
			}
			last, err := f.last.given(cmd, "last", 1)
			if err == nil && last != nil && in.Limit != nil {
				err = errors.New("--limit counts from the oldest, --last from the newest: give one of them")
			}
			if err != nil {
				return usage(cmd, err)
			}
			in.Type, in.Correlation = textGiven(cmd, "type", f.typ), textGiven(cmd, "correlation", f.correlation)
			if in.Type != nil {
				a.warnOfType(*in.Type)
			}
			if in.SinceTime, err = moment(cmd, "after", f.after, time.Now()); err != nil {
				return usage(cmd, err)
			}
			if in.UntilTime, err = moment(cmd, "before", f.before, time.Now()); err != nil {
				return usage(cmd, err)
			}
			if last != nil {
				return a.auditLast(cmd.Context(), in, *last)
			}
			return a.auditLog(cmd.Context(), in)
		},
	}
	f.pid.add(cmd, "pid", "only calls of this process; 0 is the operator")
	f.since.add(cmd, "since", "only entries after the one of this number")
	cmd.Flags().StringVar(&f.typ, "type", "", "only calls of this syscall, such as Memory.Set")
	cmd.Flags().StringVar(&f.correlation, "correlation", "", "only calls with this correlation")
	cmd.Flags().StringVar(&f.after, "after", "", "only calls from then on: a time such as 2026-11-21T08:00:00Z, or how long ago, such as 15m")
	cmd.Flags().StringVar(&f.before, "before", "", "only calls up to then, likewise")
	f.limit.add(cmd, "limit", "most entries to print, from the oldest (default: all)")
	f.last.add(cmd, "last", "only the newest entries, so many")
	return cmd
}

// moment is the time that a flag gives, in milliseconds since the Unix epoch; nil where it was not given.
func moment(cmd *cobra.Command, name, value string, now time.Time) (*int64, error) {
	if !cmd.Flags().Changed(name) {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		ago, notAgo := time.ParseDuration(value)
		if notAgo != nil || ago < 0 {
			return nil, fmt.Errorf("--%s %q is neither a time such as 2026-11-21T08:00:00Z nor a duration such as 15m", name, value)
		}
		at = now.Add(-ago)
	}
	ms := max(0, at.UnixMilli())
	return &ms, nil
}

// warnOfType says that nothing in the journal is of type typ, as far as this program knows: it may be of another age.
func (a *app) warnOfType(typ string) {
	if _, ok := schema.Lookup(typ); ok {
		return
	}
	also := ""
	if like := schema.NearestType(typ); like != "" {
		also = "; did you mean " + like + "?"
	} else if schema.Registrable(typ) || schema.UserSpace(typ) {
		return
	}
	a.say("no syscall, and no entry of the kernel's own, has the type %q%s", typ, also)
}

// auditLog follows the pages of the log until it ends, or until in.Limit entries were printed.
func (a *app) auditLog(ctx context.Context, in schema.AuditLogInput) error {
	left := int64(-1) // no limit
	if in.Limit != nil {
		left = *in.Limit
	}
	out := newAuditFeed(a)
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		for left != 0 {
			limit := int64(listPage)
			if left > 0 {
				limit = min(limit, left)
			}
			in.Limit = &limit
			page, err := auditPage(ctx, c, schema.Metadata{}, &in)
			if err != nil {
				return err
			}
			for _, e := range page.entries {
				if err := out.entry(&e); err != nil {
					return err
				}
			}
			if left > 0 {
				left -= int64(len(page.entries))
			}
			if page.next == 0 {
				return nil
			}
			in.SinceSeq = &page.next
		}
		return nil
	})
}
