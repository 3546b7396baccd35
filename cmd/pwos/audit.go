package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newAudit(a *app) *cobra.Command {
	return cli.Group("audit", "read, follow, verify and archive the record of all calls",
		`audit reads the journal. It has an entry for each call that the kernel understood, denied
calls included; each entry contains the hash of the one before.`,
		`  pwos audit log --last 20
  pwos audit log --pid 7
  pwos audit show 34
  pwos audit tail
  pwos audit verify
  pwos audit archive --before 720h /archive/pwos
  pwos audit metrics`,
		newAuditLog(a), newAuditShow(a), newAuditTail(a), newAuditVerify(a), newAuditRedact(a), newAuditArchive(a), newAuditMirror(a), newAuditMetrics(a))
}

func newAuditMetrics(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "count calls and refusals, and show how long calls took",
		Long: `metrics counts the calls in the journal and their refusals (by capability or quota), in
total and by syscall, and shows the median and the 99th percentile of their duration. A
call is counted once, when it has ended, as "pwos audit log" shows it. Entries that the
kernel writes on its own are in the log, but are not counted.`,
		Example: `  pwos audit metrics
  pwos audit metrics --json | jq .denied_by_code`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.auditMetrics(cmd.Context())
		},
	}
}

func (a *app) auditMetrics(ctx context.Context) error {
	typ := schema.AuditMetrics.Type
	return a.Show(ctx, typ, &schema.AuditMetricsInput{}, func(data schema.Value) error {
		if a.WantsJSON() {
			return a.PrintLine(data)
		}
		m, err := view.AnswerAs[schema.AuditMetricsOutput](typ, data)
		if err != nil {
			return err
		}
		t := new(view.Table)
		t.Row("calls", fmt.Sprint(m.TotalCalls))
		t.Row("refused", fmt.Sprint(m.DeniedCalls))
		t.Row("took on average", view.Brisk(time.Duration(m.AvgLatencyUS*float64(time.Microsecond))))
		if err := a.Print(t.Text()); err != nil {
			return err
		}
		if err := a.PrintText(""); err != nil {
			return err
		}
		return a.Print(view.MetricsTable(&m).Text())
	})
}

func newAuditTail(a *app) *cobra.Command {
	var in schema.AuditSubscribeInput
	var limit *int64
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "follow the record live",
		Long: `tail prints a line for each new entry of the journal as it comes, as "pwos audit log"
shows it, until interrupted: a line of JSON each where stdout is no terminal. It
subscribes to the record, which is one call with an entry of its own in the journal; that
one is not printed.`,
		Example: `  pwos audit tail
  pwos audit tail --pid 7 --type 'Memory.*' --type Http.Fetch
  pwos audit tail --from 1000 --limit 50
  pwos audit tail | jq -c 'select(.success | not)'`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, typ := range in.Types {
				if !strings.HasSuffix(typ, ".*") {
					a.warnOfType(typ)
				}
			}
			return a.auditTail(cmd.Context(), &in, limit)
		},
	}
	a.AgentFlag(cmd, &in, "pid", "pid", "only calls of this process, without those of its descendants; 0 is the operator")
	cmd.Flags().StringArrayVar(&in.Types, "type", nil, "only calls of this syscall, such as Memory.Set, or of a domain, such as Memory.*; may be repeated")
	cmd.Flags().Var(cli.EntryFlag(&in.SinceSeq), "from", "number of the first entry to print (default: only new entries)")
	cmd.Flags().Var(cli.Number(&limit, 1), "limit", "end after this many entries (default: never)")
	return cmd
}

// auditTail prints new entries, at most limit of them; nil means no limit. It requests the message data, and omits it if only the
// operator may read it.
func (a *app) auditTail(ctx context.Context, in *schema.AuditSubscribeInput, limit *int64) error {
	err := a.WithKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		names, err := a.agentNames(ctx, c)
		if err != nil {
			return err
		}
		out, shown := newAuditFeed(a, false), int64(0)
		each := func(id string, event schema.Message, e schema.AuditEntry) error {
			if e.ID == id {
				return nil
			}
			if err := out.entry("", names, &view.Entry{AuditEntry: e, Raw: event.Data}); err != nil {
				return err
			}
			if shown++; limit != nil && shown == *limit {
				return cli.ErrEnough
			}
			return nil
		}
		in.Request = new(true)
		if err = cli.SubscribeOn(ctx, c, schema.AuditSubscribe, in, each); errors.Is(err, fault.CapabilityOperatorOnly) {
			in.Request = nil
			err = cli.SubscribeOn(ctx, c, schema.AuditSubscribe, in, each)
		}
		return err
	})
	if errors.Is(err, cli.ErrEnough) {
		return nil
	}
	return err
}
