package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/view"
)

func newStory(a *app) *cobra.Command {
	var q auditQuestion
	var page string
	cmd := &cobra.Command{
		Use:   "story",
		Short: "show the record as a tree of causes",
		Long: `story describes the calls of the record in words, each below the one that its message names as
its cause, if that comes before it. It prints while it reads, so a long record starts
at once. The kernel's housekeeping and the operator's queries are left out.

In a cluster, --all tells the story of each kernel, one after the other, and --kernel NAME that of
one (docs/cluster.md). A kernel that does not answer is named.

--html writes one self-contained page without scripts, which can be sent to
somebody. If stdout is no terminal, each call is a line of JSON: depth, who, text, entry.`,
		Example: `  pwos story --since 1000
  pwos story --correlation flow-1
  pwos story --pid 7 --html story.html`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("html") && page == "" {
				return usage(cmd, errors.New("--html needs the name of a file"))
			}
			return a.story(cmd.Context(), q, page)
		},
	}
	memberFlag(cmd, &q.AuditLogInput, "pid", "pid", "only calls of this process, without those of its descendants; 0 is the operator")
	memberFlag(cmd, &q.AuditLogInput, "correlation", "correlation", "only calls with this correlation")
	memberFlag(cmd, &q.AuditLogInput, "since_seq", "since", "only entries after the one with this number")
	cmd.Flags().Var(number(&q.Limit, 1), "limit", "most entries to read (default: all)")
	cmd.Flags().BoolVar(&q.at.all, "all", false, "also tell the story of the other kernels of the cluster")
	q.at.flag(cmd)
	cmd.Flags().StringVar(&page, "html", "", "write a page to this file instead of stdout")
	return cmd
}

// story prints the story of the wanted entries, to stdout or as a page.
func (a *app) story(ctx context.Context, q auditQuestion, page string) error {
	switch {
	case page != "":
		return a.storyPage(ctx, q, page)
	case a.wantsJSON():
		return a.tell(ctx, q, func(kernel string, s *view.Sentence) error { return a.printLine(view.OfKernel(kernel, s.JSON())) })
	}
	told := ""
	return a.tell(ctx, q, func(kernel string, s *view.Sentence) error {
		if kernel != told {
			told = kernel
			if err := a.printText(a.style(view.Bold, view.Escaped(kernel)) + ":\n"); err != nil {
				return err
			}
		}
		return a.printText(s.Line(a.style))
	})
}

// storyPage writes a story as a page, atomically.
func (a *app) storyPage(ctx context.Context, q auditQuestion, page string) (err error) {
	file, err := renameio.NewPendingFile(page, renameio.WithPermissions(0o600))
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	if err := a.tellPage(ctx, q, file); err != nil {
		return err
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// tellPage writes the page of a story.
func (a *app) tellPage(ctx context.Context, q auditQuestion, file io.Writer) error {
	put := func(text string) error {
		if _, err := io.WriteString(file, text); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
		return nil
	}
	if err := put(view.PageHead("What happened, and what caused what")); err != nil {
		return err
	}
	told := ""
	if err := a.tell(ctx, q, func(kernel string, s *view.Sentence) error {
		text := s.HTML()
		if kernel != told {
			told = kernel
			text = view.PageKernel(kernel) + text
		}
		return put(text)
	}); err != nil {
		return err
	}
	return put(view.PageFoot)
}

// tell calls write with each sentence of a story, while it reads the record, and the kernel whose record it is, if several
// are asked.
func (a *app) tell(ctx context.Context, q auditQuestion, write func(kernel string, s *view.Sentence) error) error {
	return a.atKernels(ctx, 0, q.at, func(ctx context.Context, c *client.Client, kernel string) error {
		q.archived, q.Request = a.sayArchived, nil
		names, err := allNames(ctx, c)
		if err != nil {
			return err
		}
		end, err := journalEnd(ctx, c)
		if err != nil {
			return err
		}
		n := &view.Narrative{Names: names}
		all := func(sentences []view.Sentence) error {
			for i := range sentences {
				if err := write(kernel, &sentences[i]); err != nil {
					return err
				}
			}
			return nil
		}
		err = q.each(ctx, c, func(entries []view.Entry) error {
			for i := range entries {
				if entries[i].Seq >= end { // entries that arrive meanwhile are left out
					return errEnough
				}
				if err := all(n.Tell(&entries[i])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		return all(n.End())
	})
}
