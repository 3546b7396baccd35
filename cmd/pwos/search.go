package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newSearch(a *app) *cobra.Command {
	var in schema.EventSearchInput
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "search the record of all calls, the best first",
		Long: `search finds calls by words: of their types, agents, origins, correlations and errors, and
of the data that the journal keeps. A call must have all words. Words in quotes must
follow one another; a word that ends in * matches all words with that prefix. Of the
matching calls, the newest 1000 are ranked. The search runs in the kernel, without a
model.

If stdout is no terminal, each call is a line of JSON. It prints nothing if nothing is
found.`,
		Example: `  pwos search api.example.com timeout
  pwos search '"disk full"' 'Memory.*' --since 24h
  pwos search denied worker --limit 5`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Query = strings.Join(args, " ")
			return a.search(cmd, &in)
		},
	}
	cli.MemberFlag(cmd, &in, "limit", "limit", "most calls to print (default 20)")
	cmd.Flags().Var(cli.TimeFlag(&in.Since), "since", "only calls after this time, such as yesterday or 2026-11-21T08:00:00Z, or this long ago, such as 15m")
	return cmd
}

func (a *app) search(cmd *cobra.Command, in *schema.EventSearchInput) error {
	return a.Show(cmd.Context(), schema.EventSearch.Type, in, func(answer schema.Value) error {
		found, err := view.FoundIn(answer)
		if err != nil {
			return err
		}
		list := a.Listing(view.FoundHeader()...)
		if out, err := view.AnswerAs[schema.EventSearchOutput](schema.EventSearch.Type, answer); err == nil && out.Archived != nil {
			a.sayArchived(out.Archived)
		}
		for i := range found {
			if err := list.Add(found[i].Raw, found[i].Cells(a.Style)...); err != nil {
				return err
			}
		}
		return list.End()
	})
}
