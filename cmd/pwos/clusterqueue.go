package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newClusterQueue(a *app) *cobra.Command {
	var drop int64
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "list the messages that wait for other kernels, or drop one",
		Long: `queue lists the messages to other kernels that have no outcome yet, and why each waits.

--drop ID ends one: it is not sent any more. One that was sent before (SENT: maybe) may have
arrived.`,
		Example: `  pwos cluster queue
  pwos cluster queue --drop 17`,
		Args: cli.Arguments(cobra.NoArgs),
	}
	cmd.Flags().Int64Var(&drop, "drop", 0, "the number of a message that is not to be sent any more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("drop") {
			return a.Show(cmd.Context(), schema.ClusterDrop.Type, &schema.ClusterDropInput{MsgID: drop}, func(data schema.Value) error { return a.PrintLine(data) })
		}
		return a.Show(cmd.Context(), schema.ClusterQueue.Type, &schema.ClusterQueueInput{}, func(data schema.Value) error {
			if a.WantsJSON() {
				return a.PrintLine(data)
			}
			q, err := view.AnswerAs[schema.ClusterQueueOutput](schema.ClusterQueue.Type, data)
			if err != nil {
				return err
			}
			return a.PrintTable(view.ClusterQueue(&q))
		})
	}
	return cmd
}
