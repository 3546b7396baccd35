package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// auditLogFlags are the flags of `pwos audit log`.
type auditLogFlags struct{ pid, since, limit numberFlag }

func newAuditLog(a *app) *cobra.Command {
	var f auditLogFlags
	cmd := &cobra.Command{
		Use:   "log",
		Short: "print the record, oldest entries first",
		Long: `log prints the entries of the journal, oldest first: a line of JSON each where stdout
is no terminal. It asks for page after page until --limit, or until the end; each
page is a call too, with an entry of its own.`,
		Example: `  pwos audit log --limit 20
  pwos audit log --pid 7 --since 1000
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
			return a.auditLog(cmd.Context(), in)
		},
	}
	f.pid.add(cmd, "pid", "only calls of this process; 0 is the operator")
	f.since.add(cmd, "since", "only entries after the one of this number")
	f.limit.add(cmd, "limit", "most entries to print (default: all)")
	return cmd
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
