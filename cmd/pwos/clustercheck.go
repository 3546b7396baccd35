package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newClusterCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "show which promises the bus keeps",
		Long: `check asks the bus what this kernel relies on it for: that it syncs each write before it
acknowledges it, that streams have their replicas and drop nothing, that nodes know each other,
that links use TLS, that long messages pass, and that the clocks agree.
It needs no kernel, and changes nothing. Each start makes the same check, and logs what it
finds; with "acknowledge = quorum" a kernel does not start if an answer could be lost.

A NATS server does not tell its clients whether it syncs, which is "unknown" then. Nodes of
pwos-bus do.

Exit status: 1 a promise is broken, or one that quorum needs is unknown, 6 the bus cannot be
reached.`,
		Example: `  pwos cluster check`,
		Args:    cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onBus(cmd.Context(), func(ctx context.Context, cfg *config.Config, conn *cluster.Conn, js cluster.Streams) error {
				all, err := cluster.Preflight(ctx, conn, js, cfg.Cluster.Name, cfg.Cluster.Replicas)
				if err != nil {
					return err
				}
				return a.printPromises(all, cfg)
			})
		},
	}
}

// printPromises prints the findings of a preflight. It returns an error if a promise is not kept that matters to this configuration.
func (a *app) printPromises(all cluster.Promises, cfg *config.Config) error {
	t := new(view.Table)
	t.Header("promise", "state", "what to do")
	var wrong []string
	for _, p := range all {
		state := a.Style(view.Good, p.State)
		if p.State != cluster.Kept {
			state = a.Style(view.Bad, p.State)
		}
		if p.State == cluster.Broken {
			wrong = append(wrong, p.Name)
		}
		t.Row(p.Name, state, view.Escaped(p.Found))
		if !a.WantsJSON() {
			continue
		}
		line := view.Object(nil).Text("promise", p.Name).Text("state", p.State).Boolean("quorum", p.Needed)
		if p.Found != "" {
			line = line.Text("found", p.Found)
		}
		if err := a.PrintLine(line.Close()); err != nil {
			return err
		}
	}
	if !a.WantsJSON() {
		if err := a.PrintTable(t); err != nil {
			return err
		}
	}
	if cfg.Cluster.Acknowledge == config.Quorum {
		if err := all.Refusal(cfg.Cluster.AcceptUnsynced); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return fault.ClusterUnsynced.New("the bus does not keep: %s", strings.Join(wrong, ", "))
	}
	return nil
}
