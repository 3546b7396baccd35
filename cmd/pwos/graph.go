package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newGraph(a *app) *cobra.Command {
	var in schema.EventGraphInput
	format := "json"
	cmd := &cobra.Command{
		Use:   "graph --correlation ID",
		Short: "show what caused what in a workflow",
		Long: `graph shows the calls of a correlation: what each caused, the processes that they
spawned, and the receivers of their mail. Its format is json (nodes and edges), mermaid (a
flowchart as text) or svg (a self-contained picture). It shows at most 2000 nodes, and
how many calls are left out. It prints nothing if no call has the correlation.`,
		Example: `  pwos graph --correlation flow-7 --format svg > flow-7.svg
  pwos graph --correlation flow-7 --format mermaid
  pwos graph --correlation flow-7 | jq '.nodes[] | select(.status == "denied")'`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case in.CorrelationID == "":
				return cli.Usage(cmd, errors.New("--correlation is required: give the correlation of a workflow"))
			case format == "mermaid":
				in.Format = &format
			case format != "json" && format != "svg":
				return cli.Usage(cmd, errors.New("--format must be json, mermaid or svg"))
			}
			return a.graph(cmd, &in, format)
		},
	}
	cli.MemberFlag(cmd, &in, "correlationId", "correlation", "correlation of the calls")
	cmd.Flags().StringVar(&format, "format", format, "json, mermaid or svg")
	return cmd
}

func (a *app) graph(cmd *cobra.Command, in *schema.EventGraphInput, format string) error {
	typ := schema.EventGraph.Type
	return a.Show(cmd.Context(), typ, in, func(answer schema.Value) error {
		g, err := view.AnswerAs[schema.EventGraphOutput](typ, answer)
		if g.Archived != nil {
			a.sayArchived(g.Archived)
		}
		switch {
		case err != nil:
			return err
		case len(g.Nodes) == 0 && strings.Count(g.Mermaid, "\n") < 2: // it has only the line of the diagram's type
			return nil
		case format == "svg":
			return a.Print(view.GraphSVG(&g))
		case format == "mermaid":
			return a.Print(g.Mermaid)
		}
		return a.PrintLine(answer)
	})
}
