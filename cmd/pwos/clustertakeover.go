package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/lead"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newClusterTakeover(a *app) *cobra.Command {
	var acceptLoss bool
	cmd := &cobra.Command{
		Use:   "takeover NAME",
		Short: "lead a kernel on this host in place of another one",
		Long: `takeover makes this host the leader of the kernel NAME, whose host is lost or is to be replaced.
It fetches the record from the bus into this environment's state directory, checks it, appends
the entry that begins the epoch of this host, and starts the kernel.

The configuration of this environment names the kernel (cluster.name = NAME) and the same bus,
and the members files have the line that "pwos cluster key --standby" prints here.

The host that led before can append nothing from then on. It stops when it notices, and sets
aside what the bus does not have. Programs that restart are started here, others are ended.

Where a standby waits on this host, it serves the kernel once takeover has made it the leader: to
hand a kernel over without waiting for its lease, run "pwos shutdown" at the host that leads, and
takeover here.

With acknowledge = "quorum", no call that was answered is lost. With "disk", calls that the
bus did not get in time are: takeover refuses that unless you add --accept-loss.

Exit status: 3 the key of this host may not lead, 8 calls may be lost, or this host leads
already, 10 the record on the bus is not what the kernel wrote.`,
		Example: `  pwos cluster key --standby >> members   # once, on this host
  pwos cluster takeover alpha`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.takeOver(cmd, args[0], acceptLoss) },
	}
	cmd.Flags().BoolVar(&acceptLoss, "accept-loss", false, "take over even if answered calls may be lost")
	return cmd
}

func (a *app) takeOver(cmd *cobra.Command, name string, acceptLoss bool) error {
	cfg, err := clusterSettings()
	if err != nil {
		return err
	}
	if cfg.Cluster.Name != name {
		return cli.Usage(cmd, fmt.Errorf("the configuration %s is of the kernel %s: to lead %s too, give it a configuration and a state directory of its own "+
			"(PWOS_CONFIG, PWOS_STATE_DIR, PWOS_RUNTIME_DIR)", cfg.File, cfg.Cluster.Name, name))
	}
	ctx, cancel := a.Bound(cmd.Context(), 0)
	defer cancel()
	made, err := offline.TakeOver(ctx, nil, os.Getenv, a.Stderr, acceptLoss)
	if err != nil {
		return err
	}
	a.Timeout = cmp.Or(a.Timeout, cli.UsualTimeout+2*time.Duration(cfg.Cluster.Lease)) // a standby needs some time to notice
	if err := a.WithKernel(ctx, 0, awaitLead); err != nil {
		return fmt.Errorf("this host leads the kernel %s from now on, but the kernel does not start: %w", name, err)
	}
	return a.printTakenOver(&made)
}

// awaitLead waits until the lease of the former leader has ended. Until then this host does not answer.
func awaitLead(ctx context.Context, c *client.Client) error {
	for {
		s, err := client.Call(ctx, c, schema.ClusterStatus, &schema.ClusterStatusInput{})
		if err != nil || s.Lease != "lost" {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *app) printTakenOver(t *lead.TakenOver) error {
	key, _, err := access.ParsePublicKey(t.HostKey)
	if err != nil {
		return err
	}
	o := view.Object(nil).Text("kernel", t.Kernel).Text("state_dir", t.StateDir).Integer("epoch", t.Epoch).
		Text("host_key", key.Fingerprint()).Integer("last_seq", int64(t.Last)).Boolean("complete", t.Quorum).Integer("agents", int64(t.Agents))
	lost := "nothing that was answered: a majority of the bus had it before"
	if !t.Quorum {
		lost = "calls that were answered after that entry, if there were any"
	}
	table := new(view.Table)
	table.Row("kernel", view.Escaped(t.Kernel)+", epoch "+strconv.FormatInt(t.Epoch, 10))
	table.Row("state directory", view.Escaped(t.StateDir))
	table.Row("host key", key.Fingerprint())
	last := "entry " + strconv.FormatUint(t.Last, 10)
	if !t.Time.IsZero() {
		o = o.Integer("last_time", t.Time.UnixMilli())
		last += ", of " + t.Time.Format(time.RFC3339)
	}
	table.Row("record", "up to "+last)
	table.Row("lost", lost)
	if t.Aside != "" {
		o = o.Text("set_aside", t.Aside)
		table.Row("set aside", view.Escaped(t.Aside))
	}
	return a.PrintEither(o.Close(), table)
}
