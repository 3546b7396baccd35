package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// auditFeed prints entries as they arrive.
type auditFeed struct {
	*cli.Feed

	ofKernels bool // each row begins with the name of the kernel
}

func newAuditFeed(a *app, ofKernels bool) auditFeed {
	widths, columns := []int{7, 23, 12, 0}, []cli.Column(nil)
	if ofKernels {
		columns = append(columns, cli.Col("kernel", 8))
	}
	for i, name := range view.EntryHeader() {
		columns = append(columns, cli.Col(name, widths[i]))
	}
	return auditFeed{cli.NewFeed(a.App, columns...), ofKernels}
}

func (f auditFeed) entry(kernel string, names view.Names, e *view.Entry) error {
	names.Learn(&e.AuditEntry)
	cells := e.Cells(names, f.App.Style)
	if f.ofKernels {
		cells = append([]string{view.Escaped(kernel)}, cells...)
	}
	return f.Write(view.OfKernel(kernel, e.Raw), cells...)
}

// agentNames returns the names of the processes for output to people; JSON output has PIDs only. It returns no names if
// the caller may not list processes.
func (a *app) agentNames(ctx context.Context, c *client.Client) (view.Names, error) {
	if a.WantsJSON() {
		return make(view.Names), nil
	}
	return allNames(ctx, c)
}

// allNames returns the names of all processes by PID. It returns no names if the caller may not list processes.
func allNames(ctx context.Context, c *client.Client) (view.Names, error) {
	names := make(view.Names)
	processes, err := cli.ListProcesses(ctx, c, nil)
	if errors.Is(err, fault.Forbidden) {
		return names, nil
	}
	for i := range processes {
		names[processes[i].PID] = processes[i].AgentID
	}
	return names, err
}

// auditLog prints the selected entries.
func (a *app) auditLog(ctx context.Context, q auditQuestion) error {
	return a.WithKernels(ctx, 0, q.at, func(ctx context.Context, list []cli.Asked) error {
		named := list[0].Kernel != ""
		feed, t := newAuditFeed(a, named), a.newTimeline(list, q)
		t.names = a.agentNames
		if !named {
			t.end = nil // a single record is read without a fixed end
		}
		err := t.each(ctx, func(r *record, e *view.Entry) error { return feed.entry(r.Kernel, r.names, e) })
		return cmp.Or(err, t.missing.First)
	})
}

// auditLast prints the newest selected entries, limited to most. It excludes the entries that its own
// queries append.
func (a *app) auditLast(ctx context.Context, q auditQuestion, most int64) error {
	return a.WithKernels(ctx, 0, q.at, func(ctx context.Context, list []cli.Asked) error {
		feed, t := newAuditFeed(a, list[0].Kernel != ""), a.newTimeline(list, q)
		t.names = a.agentNames
		err := t.last(ctx, most, func(r *record, e *view.Entry) error { return feed.entry(r.Kernel, r.names, e) })
		return cmp.Or(err, t.missing.First)
	})
}

func newAuditLog(a *app) *cobra.Command {
	var q auditQuestion
	var last *int64
	var denied bool
	var since arg.Point
	var after *int64
	cmd := &cobra.Command{
		Use:   "log",
		Short: "print the record, oldest entries first",
		Long: `log prints one line for each entry of the journal, oldest first: the time, the process, and
what the call did, with its outcome. A refusal has its error id and
the fix. Data that the journal does not keep is not shown. --last 20 prints
the newest 20 entries that the other flags select.

Queries by the operator, such as those of this command itself, are left out unless
--all, --pid or --type selects them. An agent sees its own calls and its descendants'.

In a cluster, --all also prints the record of the other kernels, and --kernel NAME that of one:
as far as the members file there allows it (docs/cluster.md). Entries of several kernels are in
the order of their times, which the clocks of different hosts tell differently; those of one
kernel stay in the order of its record. --limit and --last count all of them, --since those of
each kernel. A kernel that does not answer is named, in JSON as {"kernel", "error"}.

If stdout is no terminal, each entry is a line of JSON: the answer of Audit.Log,
plus request, the data of the message, and kernel where several are asked.

Exit status: 6 a kernel that was asked is away, 3 it refused.`,
		Example: `  pwos audit log --last 20
  pwos audit log --denied --after 15m
  pwos audit log --pid 7 --since 1000
  pwos audit log --since 24h
  pwos audit log --type Memory.Set --last 5
  pwos audit log --after 2026-11-21T08:00:00Z --before 2026-11-21T09:00:00Z
  pwos audit log | jq -c 'select(.success | not) | [.code, .error_id, .request]'`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last != nil && q.Limit != nil {
				return cli.Usage(cmd, errors.New("--limit counts from the oldest, --last from the newest: give one of them"))
			}
			if q.Type != nil {
				a.warnOfType(*q.Type)
			}
			if denied {
				q.Denied = &denied
			}
			q.at.All = q.queries
			if after != nil && since.Time != nil {
				return cli.Usage(cmd, errors.New("--since and --after both name a time: give one of them"))
			}
			q.SinceSeq, q.SinceTime = since.Seq, cmp.Or(after, since.Time)
			if last != nil {
				return a.auditLast(cmd.Context(), q, *last)
			}
			return a.auditLog(cmd.Context(), q)
		},
	}
	a.AgentFlagAt(cmd, &q.at, &q.AuditLogInput, "pid", "pid", "only calls of this process, without those of its descendants; 0 is the operator")
	cmd.Flags().Var(cli.PointFlag(&since, 0), "since", sinceHelp)
	cli.MemberFlag(cmd, &q.AuditLogInput, "type", "type", "only calls of this syscall, such as Memory.Set")
	cli.MemberFlag(cmd, &q.AuditLogInput, "correlation", "correlation", "only calls with this correlation")
	cmd.Flags().BoolVar(&denied, "denied", false, "only calls that were refused")
	cmd.Flags().BoolVar(&q.queries, "all", false, "include the operator's queries, and the record of the other kernels of the cluster")
	q.at.Flag(a.App, cmd)
	cmd.Flags().Var(cli.TimeFlag(&after), "after", "only calls after this time, such as yesterday, 08:00 or 2026-11-21T08:00:00Z, or this long ago, such as 15m")
	cmd.Flags().Var(cli.TimeFlag(&q.UntilTime), "before", "only calls before this time, in the same form")
	cmd.Flags().Var(cli.Number(&q.Limit, 1), "limit", "most entries to print, from the oldest (default: all)")
	cmd.Flags().Var(cli.Number(&last, 1), "last", "print only this many of the newest entries")
	return cmd
}

const sinceHelp = "only entries after the one with this number, or calls after a time, such as 24h ago, yesterday or 2026-11-21T08:00:00Z"

// warnOfType warns if this program does not know the type; the journal may be from another version.
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
	a.Say("neither a syscall nor an entry of the kernel has the type %q%s", typ, also)
}
