package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// auditTailFlags are the flags of `pwos audit tail`.
type auditTailFlags struct {
	pid, from, limit numberFlag
	types            []string
}

func newAuditTail(a *app) *cobra.Command {
	var f auditTailFlags
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "follow the record live",
		Long: `tail prints each new entry of the journal as it comes, until interrupted: a line of
JSON each where stdout is no terminal. It subscribes to the record, which is one call with
an entry of its own in the journal; that one is not printed.`,
		Example: `  pwos audit tail
  pwos audit tail --pid 7 --type 'Memory.*' --type Http.Fetch
  pwos audit tail --from 1000 --limit 50
  pwos audit tail | jq -c 'select(.success | not)'`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := schema.AuditSubscribeInput{Types: f.types}
			var err error
			if in.PID, err = f.pid.given(cmd, "pid", 0); err != nil {
				return usage(cmd, err)
			}
			if in.SinceSeq, err = f.from.given(cmd, "from", 1); err != nil {
				return usage(cmd, err)
			}
			limit, err := f.limit.given(cmd, "limit", 1)
			if err != nil {
				return usage(cmd, err)
			}
			for _, typ := range f.types {
				if !strings.HasSuffix(typ, ".*") {
					a.warnOfType(typ)
				}
			}
			return a.auditTail(cmd.Context(), &in, limit)
		},
	}
	f.pid.add(cmd, "pid", "only calls of this process; 0 is the operator")
	cmd.Flags().StringArrayVar(&f.types, "type", nil, "only calls of this syscall, such as Memory.Set, or of a domain, such as Memory.*; may be given again")
	f.from.add(cmd, "from", "number of the entry to begin with (default: what comes from now on)")
	f.limit.add(cmd, "limit", "end after this many entries (default: never)")
	return cmd
}

// errShown ends a tail that has printed as many entries as it was to.
var errShown = errors.New("limit is reached")

// auditTail prints the entries that come, at most so many; nil: without end.
func (a *app) auditTail(ctx context.Context, in *schema.AuditSubscribeInput, limit *int64) error {
	data, err := schema.AuditSubscribe.Encode(in)
	if err != nil {
		return err
	}
	m := schema.Message{
		Kind: schema.KindCommand, Type: schema.AuditSubscribe.Type, Data: data, Meta: schema.Metadata{ID: schema.NewStamper().NewID()},
	}
	out, shown := newAuditFeed(a), int64(0)
	err = a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		return c.Subscribe(ctx, m, func(event schema.Message) error {
			e, err := answerAs[schema.AuditEntry](event.Type, event.Data)
			if err != nil || e.ID == m.Meta.ID {
				return err
			}
			if err := out.entry(&auditEntry{e, event.Data}); err != nil {
				return err
			}
			if shown++; limit != nil && shown == *limit {
				return errShown
			}
			return nil
		})
	})
	if errors.Is(err, errShown) {
		return nil
	}
	return err
}
