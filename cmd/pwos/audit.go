package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newAudit(a *app) *cobra.Command {
	return group("audit", "read, follow and verify the record of all calls",
		`audit is about the journal: an entry for each call that the kernel understood, denied
ones too, each chained to the one before by its hash.`,
		`  pwos audit log --last 20
  pwos audit log --pid 7
  pwos audit tail
  pwos audit verify
  pwos audit metrics`,
		newAuditLog(a), newAuditTail(a), newAuditVerify(a), newAuditMirror(a), newAuditMetrics(a))
}

// auditPart is an answer of Audit.Log; next is 0 if there is no more for now.
type auditPart struct {
	entries []view.Entry
	next    int64
}

// auditPage asks for a page of the log.
func auditPage(ctx context.Context, c *client.Client, in *schema.AuditLogInput) (page auditPart, err error) {
	typ := schema.AuditLog.Type
	data, err := invoke(ctx, c, typ, in)
	if err != nil {
		return page, err
	}
	members, _ := view.Members(data)
	page.next, _ = view.As[int64](members["next"])
	list, _ := view.Elements(members["entries"])
	for _, raw := range list {
		e, err := view.AnswerAs[schema.AuditEntry](typ, raw)
		if err != nil {
			return page, err
		}
		page.entries = append(page.entries, view.Entry{AuditEntry: e, Raw: raw})
	}
	return page, nil
}

// eachPage reads pages of the log from the first entry that in asks for, up to its limit; nil: all. more says that
// another page follows. The first error of do ends it; errEnough is not returned.
func eachPage(ctx context.Context, c *client.Client, in schema.AuditLogInput, do func(entries []view.Entry, more bool) error) error {
	return pages(in.Limit, func(limit int64) (int, bool, error) {
		in.Limit = &limit
		page, err := auditPage(ctx, c, &in)
		if err != nil {
			return 0, false, err
		}
		in.SinceSeq = &page.next
		return len(page.entries), page.next != 0, do(page.entries, page.next != 0)
	})
}

// auditFeed prints entries as they come.
type auditFeed struct{ *feed }

func newAuditFeed(a *app) auditFeed {
	return auditFeed{newFeed(a, column{"seq", 7}, column{"time", 23}, column{"pid", 4}, column{"type", 22}, column{"took", 7}, column{"result", 0})}
}

func (f auditFeed) entries(entries []view.Entry) error {
	for i := range entries {
		if err := f.write(entries[i].Raw, entries[i].Cells(f.app.style)...); err != nil {
			return err
		}
	}
	return nil
}

// journalEnd is the number of the journal's last entry, which is this question's own.
func journalEnd(ctx context.Context, c *client.Client) (int64, error) {
	beyond, one := int64(1<<53-1), int64(1)
	answer, err := request(ctx, c, schema.Message{Type: schema.AuditLog.Type}, &schema.AuditLogInput{SinceSeq: &beyond, Limit: &one})
	end := client.SeqOf(&answer)
	if err == nil && end == 0 {
		err = errors.New("find end of journal: the kernel does not say: " + string(answer.Data))
	}
	return end, err
}

// auditLast prints the newest matching entries, at most that many, of the journal before the first question about it:
// the search's own entries are not what just happened.
func (a *app) auditLast(ctx context.Context, in schema.AuditLogInput, most int64) error {
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		end, err := journalEnd(ctx, c)
		if err != nil {
			return err
		}
		entries, err := newest(view.Deref(in.SinceSeq), end-1, most, func(since, limit int64) (auditPart, error) {
			in.SinceSeq, in.Limit = &since, &limit
			return auditPage(ctx, c, &in)
		})
		if err != nil {
			return err
		}
		return newAuditFeed(a).entries(entries)
	})
}

// newest returns the last matching entries between floor and last, at most that many, oldest first. Pages only go
// forward, so it searches ever longer parts of the journal back from the end: everything at most once, and nothing
// before what it finds.
func newest(floor, last, most int64, page func(since, limit int64) (auditPart, error)) ([]view.Entry, error) {
	var found []view.Entry
	for span := most; last > floor && int64(len(found)) < most; span *= 8 { // at most 8 times an entry's number
		first := max(floor, last-span)
		part, err := lastOf(first, last, most-int64(len(found)), page)
		if err != nil {
			return nil, err
		}
		found = append(part, found...)
		last = first
	}
	return found, nil
}

// lastOf returns the last of the entries after first up to last, at most that many, and holds no more than twice as
// many.
func lastOf(first, last, most int64, page func(since, limit int64) (auditPart, error)) (found []view.Entry, err error) {
	excess := func() int { return int(max(0, int64(len(found))-most)) }
	for first < last {
		part, err := page(first, min(listPage, last-first))
		if err != nil {
			return nil, err
		}
		for _, e := range part.entries {
			if e.Seq > last {
				return slices.Delete(found, 0, excess()), nil
			}
			found = append(found, e)
		}
		if int64(excess()) > most {
			found = slices.Delete(found, 0, excess())
		}
		if part.next == 0 {
			break
		}
		first = part.next
	}
	return slices.Delete(found, 0, excess()), nil
}

func newAuditLog(a *app) *cobra.Command {
	var in schema.AuditLogInput
	var last *int64
	var after, before string
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
			if last != nil && in.Limit != nil {
				return usage(cmd, errors.New("--limit counts from the oldest, --last from the newest: give one of them"))
			}
			if in.Type != nil {
				a.warnOfType(*in.Type)
			}
			var err error
			if in.SinceTime, err = moment(cmd, "after", after, time.Now()); err != nil {
				return usage(cmd, err)
			}
			if in.UntilTime, err = moment(cmd, "before", before, time.Now()); err != nil {
				return usage(cmd, err)
			}
			if last != nil {
				return a.auditLast(cmd.Context(), in, *last)
			}
			return a.auditLog(cmd.Context(), in)
		},
	}
	memberFlag(cmd, &in, "pid", "pid", "only calls of this process; 0 is the operator")
	memberFlag(cmd, &in, "since_seq", "since", "only entries after the one of this number")
	memberFlag(cmd, &in, "type", "type", "only calls of this syscall, such as Memory.Set")
	memberFlag(cmd, &in, "correlation", "correlation", "only calls with this correlation")
	cmd.Flags().StringVar(&after, "after", "", "only calls from then on: a time such as 2026-11-21T08:00:00Z, or how long ago, such as 15m")
	cmd.Flags().StringVar(&before, "before", "", "only calls up to then, likewise")
	cmd.Flags().Var(number(&in.Limit, 1), "limit", "most entries to print, from the oldest (default: all)")
	cmd.Flags().Var(number(&last, 1), "last", "only the newest entries, so many")
	return cmd
}

// moment is the time of a flag, in milliseconds since the Unix epoch; nil if it was not given.
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

// warnOfType warns that this program knows no syscall of that type: the journal may be of another version.
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
	out := newAuditFeed(a)
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		return eachPage(ctx, c, in, func(entries []view.Entry, _ bool) error { return out.entries(entries) })
	})
}

func newAuditMetrics(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "count calls and refusals, and show how long calls took",
		Long: `metrics counts the calls in the journal and their refusals (by capability or quota), in
all and by syscall, and shows how long the calls of each took: the median, and what 99
of 100 stayed below. A call is counted once, when it has ended, as "pwos audit log"
shows it; what the kernel does itself is in the log and not counted.`,
		Example: `  pwos audit metrics
  pwos audit metrics --json | jq .denied_by_code`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.auditMetrics(cmd.Context())
		},
	}
}

func (a *app) auditMetrics(ctx context.Context) error {
	typ := schema.AuditMetrics.Type
	return a.show(ctx, typ, &schema.AuditMetricsInput{}, func(data schema.Value) error {
		if a.wantsJSON() {
			return a.printLine(data)
		}
		m, err := view.AnswerAs[schema.AuditMetricsOutput](typ, data)
		if err != nil {
			return err
		}
		t := new(view.Table)
		t.Row("calls", fmt.Sprint(m.TotalCalls))
		t.Row("refused", fmt.Sprint(m.DeniedCalls))
		t.Row("took on average", view.Brisk(time.Duration(m.AvgLatencyUS*float64(time.Microsecond))))
		if err := a.print(t.Text()); err != nil {
			return err
		}
		if err := a.printText(""); err != nil {
			return err
		}
		return a.print(view.MetricsTable(&m).Text())
	})
}

func newAuditTail(a *app) *cobra.Command {
	var in schema.AuditSubscribeInput
	var limit *int64
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
			for _, typ := range in.Types {
				if !strings.HasSuffix(typ, ".*") {
					a.warnOfType(typ)
				}
			}
			return a.auditTail(cmd.Context(), &in, limit)
		},
	}
	memberFlag(cmd, &in, "pid", "pid", "only calls of this process; 0 is the operator")
	cmd.Flags().StringArrayVar(&in.Types, "type", nil, "only calls of this syscall, such as Memory.Set, or of a domain, such as Memory.*; may be given again")
	cmd.Flags().Var(number(&in.SinceSeq, 1), "from", "number of the entry to begin with (default: what comes from now on)")
	cmd.Flags().Var(number(&limit, 1), "limit", "end after this many entries (default: never)")
	return cmd
}

// auditTail prints new entries, at most that many; nil: without end.
func (a *app) auditTail(ctx context.Context, in *schema.AuditSubscribeInput, limit *int64) error {
	out, shown := newAuditFeed(a), int64(0)
	err := subscribe(ctx, a, schema.AuditSubscribe, in, func(id string, event schema.Message, e schema.AuditEntry) error {
		if e.ID == id {
			return nil
		}
		if err := out.entries([]view.Entry{{AuditEntry: e, Raw: event.Data}}); err != nil {
			return err
		}
		if shown++; limit != nil && shown == *limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
