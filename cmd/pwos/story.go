package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/view"
)

func newStory(a *app) *cobra.Command {
	var q auditQuestion
	var since arg.Point
	var page string
	cmd := &cobra.Command{
		Use:   "story",
		Short: "show the record as a tree of causes",
		Long: `story describes the calls of the record in words, each below the one that its message names as
its cause, if that comes before it. It prints while it reads, so a long record starts
at once. The kernel's housekeeping and the operator's queries are left out.

In a cluster, --all tells the story of all kernels as one, each call with its kernel, and
--kernel NAME that of one (docs/cluster.md). Calls of several kernels are in the order of their
times, which the clocks of different hosts tell differently; those of one kernel stay in the order
of its record. A kernel that does not answer is named.

--html writes one self-contained page without scripts, which can be sent to
somebody. If stdout is no terminal, each call is a line of JSON: depth, who, text, entry, and
kernel where several are asked.`,
		Example: `  pwos story --since 1000
  pwos story --since 24h
  pwos story --correlation flow-1
  pwos story --pid 7 --html story.html`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("html") && page == "" {
				return cli.Usage(cmd, errors.New("--html needs the name of a file"))
			}
			q.SinceSeq, q.SinceTime = since.Seq, since.Time
			return a.story(cmd.Context(), q, page)
		},
	}
	a.AgentFlagAt(cmd, &q.at, &q.AuditLogInput, "pid", "pid", "only calls of this process, without those of its descendants; 0 is the operator")
	cli.MemberFlag(cmd, &q.AuditLogInput, "correlation", "correlation", "only calls with this correlation")
	cmd.Flags().Var(cli.PointFlag(&since, 0), "since", sinceHelp)
	cmd.Flags().Var(cli.Number(&q.Limit, 1), "limit", "most entries to read (default: all)")
	cmd.Flags().BoolVar(&q.at.All, "all", false, "also tell what happened at the other kernels of the cluster")
	q.at.Flag(a.App, cmd)
	cmd.Flags().StringVar(&page, "html", "", "write a page to this file instead of stdout")
	return cmd
}

// story prints the story of the selected entries, to stdout or as an HTML page.
func (a *app) story(ctx context.Context, q auditQuestion, page string) error {
	return a.WithKernels(ctx, 0, q.at, func(ctx context.Context, list []cli.Asked) (err error) {
		t := a.newTimeline(list, q)
		switch {
		case page != "":
			err = storyPage(ctx, t, page)
		case a.WantsJSON():
			err = t.tell(ctx, func(s *view.Sentence) error { return a.PrintLine(s.JSON()) })
		default:
			err = t.tell(ctx, func(s *view.Sentence) error { return a.PrintText(s.Line(a.Style)) })
		}
		return cmp.Or(err, t.missing.First)
	})
}

// storyPage writes the story to a file as an HTML page, atomically.
func storyPage(ctx context.Context, t *timeline, page string) (err error) {
	file, err := renameio.NewPendingFile(page, renameio.WithPermissions(0o600))
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	if err := tellPage(ctx, t, file); err != nil {
		return err
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// tellPage writes the HTML page of a story. The page names the kernels that did not answer.
func tellPage(ctx context.Context, t *timeline, file io.Writer) error {
	put := func(text string) error {
		if _, err := io.WriteString(file, text); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
		return nil
	}
	note := ""
	if len(t.records) > 1 {
		note = clocksDiffer
	}
	if err := put(view.PageHead("What happened, and what caused what", note)); err != nil {
		return err
	}
	t.missing.Show = func(kernel string, err error) error { return put(view.PageMissing(kernel, err.Error())) }
	if err := t.tell(ctx, func(s *view.Sentence) error { return put(s.HTML()) }); err != nil {
		return err
	}
	return put(view.PageFoot)
}
