package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newClusterNodes(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "show which nodes of the bus have the copies",
		Long: `nodes shows the nodes of the bus: how many streams each has and leads, and whether it lacks
anything. It asks the bus, and needs no kernel. As long as it fails, no other node should be
ended: fewer than a majority might then have what was written.

Exit status: 1 a node is away or behind, or the bus cannot be reached.`,
		Example: `  pwos cluster nodes
  until pwos cluster nodes; do sleep 1; done   # before the next node is upgraded`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onBus(cmd.Context(), func(ctx context.Context, cfg *config.Config, _ *cluster.Conn, js cluster.Streams) error {
				known, err := knownKernels(cfg)
				if err != nil {
					return err
				}
				nodes, err := cluster.Nodes(ctx, js, known)
				if err != nil {
					return err
				}
				return a.printNodes(nodes)
			})
		},
	}
}

// printNodes prints the nodes of the bus. It returns an error if a node is away or behind, or if there is no stream.
func (a *app) printNodes(nodes []cluster.BusNode) error {
	t := new(view.Table)
	t.Header("node", "streams", "leads", "state")
	var lacking []string
	for i := range nodes {
		n := &nodes[i]
		state, text := "current", a.Style(view.Good, "current")
		switch {
		case n.Away:
			state, text = "away", a.Style(view.Bad, "away")
		case n.Behind > 0:
			state, text = "behind", a.Style(view.Bad, fmt.Sprintf("%d writes behind", n.Behind))
		}
		if !n.Current() {
			lacking = append(lacking, n.Name+" is "+state)
		}
		line := view.Object(nil).Text("node", n.Name).Integer("streams", int64(n.Streams)).Integer("leads", int64(n.Leads)).
			Integer("behind", int64(n.Behind)).Text("state", state).Close()
		if a.WantsJSON() {
			if err := a.PrintLine(line); err != nil {
				return err
			}
		}
		t.Row(view.Escaped(n.Name), strconv.Itoa(n.Streams), strconv.Itoa(n.Leads), text)
	}
	if !a.WantsJSON() && len(nodes) > 0 {
		if err := a.PrintTable(t); err != nil {
			return err
		}
	}
	switch {
	case len(nodes) == 0:
		return fault.ClusterNoStream.New("the bus has no journal of a kernel of the members file: start one")
	case len(lacking) > 0:
		return fault.ClusterBus.New("not every node of the bus has all: %s", strings.Join(lacking, ", "))
	}
	return nil
}
