package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newCluster(a *app) *cobra.Command {
	return cli.Group("cluster", "show the other kernels, and the copies of the journals",
		`cluster is about kernels that know each other. They connect to a bus (pwos-bus), which keeps a
copy of each one's journal. The section [cluster] of the configuration names this kernel, the
bus, and the file of the members.`,
		`  pwos cluster key      # the line of this kernel for members files
  pwos cluster demo DIR # a bus and two kernels, to try it
  pwos cluster status   # is the bus reached, how far behind is the copy
  pwos cluster queue    # which messages wait for other kernels
  pwos cluster nodes    # which nodes of the bus have the copies
  pwos cluster check    # which promises the bus keeps`,
		newClusterStatus(a), newClusterQueue(a), newClusterNodes(a), newClusterCheck(a), newClusterKey(a), newClusterTakeover(a), newClusterDemo(a))
}

func newClusterStatus(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "show the kernel's state in its cluster",
		Long: `status shows whether the kernel reaches the bus, how many entries the copy of its journal is
behind, and what the other kernels may do here.

Exit status: 10 the copy has stopped, since the stream and the journal differ.`,
		Example: `  pwos cluster status
  pwos cluster status --json | jq .behind`,
		Args: cli.Arguments(cobra.NoArgs),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.Show(cmd.Context(), schema.ClusterStatus.Type, &schema.ClusterStatusInput{}, func(data schema.Value) error {
			s, err := view.AnswerAs[schema.ClusterStatusOutput](schema.ClusterStatus.Type, data)
			if err != nil {
				return err
			}
			if a.WantsJSON() {
				err = a.PrintLine(data)
			} else {
				err = a.PrintTable(view.Cluster(&s, a.Style))
			}
			if err == nil && s.Alarm != "" {
				return fault.StateDamaged.New("the copy of the journal has stopped: %s", s.Alarm)
			}
			return err
		})
	}
	return cmd
}

func newClusterKey(a *app) *cobra.Command {
	var allow []string
	var role string
	var standby bool
	cmd := &cobra.Command{
		Use:   "key",
		Short: "print the kernel's line for members files",
		Long: `key prints the line that names this kernel and its host key, for the members file of the bus
and of other kernels. It needs no kernel, and makes the host key if there is none yet.

--allow says what this kernel may call there, --role what its operator may see there: viewer or
approver. What the line on the other side says is what counts.

--standby prints the line of another host that may lead the same kernel: run it on that host,
in an environment with a state directory of its own.`,
		Example: `  pwos cluster key >> members
  pwos cluster key --allow Syscall.SendMsg,Syscall.Spawn --role viewer >> members
  pwos cluster key --standby >> members`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := clusterSettings()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
				return fmt.Errorf("make state directory: %w", err)
			}
			key, err := access.OpenHostKey(cfg.StateDir)
			if err != nil {
				return err
			}
			line := `kernel="` + cfg.Cluster.Name + `"`
			switch {
			case standby && len(allow)+len(role) > 0:
				return cli.Usage(cmd, errors.New("--standby goes neither with --allow nor with --role: what the kernel may call is in the line of its own"))
			case standby:
				line += ",standby"
			case len(allow) > 0:
				line += `,allow="` + strings.Join(allow, ",") + `"`
			}
			if role != "" {
				line += `,role="` + role + `"`
			}
			line += " " + key.Public()
			if refused := access.ParseMembers([]byte(line), time.UTC).Refused(); len(refused) > 0 {
				return cli.Usage(cmd, errors.New(refused[0].Reason))
			}
			return a.PrintLine([]byte(line))
		},
	}
	cmd.Flags().BoolVar(&standby, "standby", false, "the line of a host that may take the kernel over")
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "types that it may call there, separated by commas; may be repeated")
	cmd.Flags().StringVar(&role, "role", "", "what its operator may do there: viewer or approver")
	return cmd
}

// clusterSettings returns the configuration of this environment's kernel. It fails if that kernel is not in a cluster.
func clusterSettings() (*config.Config, error) {
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err != nil {
		return nil, cli.Misuse("pwos cluster", err)
	}
	if cfg.Cluster.Name == "" {
		return nil, fault.ClusterOff.New("the configuration %s has no section [cluster] with name and bus", cfg.File)
	}
	return &cfg, nil
}

// onBus connects to the bus as this environment's kernel, and calls do with the connection.
func (a *app) onBus(ctx context.Context, do func(context.Context, *config.Config, *cluster.Conn, cluster.Streams) error) error {
	cfg, err := clusterSettings()
	if err != nil {
		return err
	}
	key, err := access.ReadHostKey(access.HostKeyFile(cfg.StateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return fault.PlaceNotThere.New("there is no host key in %s: start the kernel once, or run \"pwos cluster key\"", cfg.StateDir)
	}
	if err != nil {
		return err
	}
	ctx, cancel := a.Bound(ctx, 0)
	defer cancel()
	dialing, stop := context.WithTimeout(ctx, busPatience)
	defer stop()
	conn, js, err := cluster.Dial(dialing, cluster.Options{
		Name: cfg.Cluster.Name, Servers: cfg.Cluster.Bus, Authority: cfg.Cluster.Authority, Key: key, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(ctx, cfg, conn, js)
}

// busPatience is the time limit for reaching the bus.
const busPatience = 5 * time.Second

// keysOf returns the keys of the hosts that may lead a kernel, which sign its journal: those of the members file, and this host's if the
// kernel is this environment's.
func keysOf(cfg *config.Config, kernel string) (keys []access.PublicKey, err error) {
	members := cluster.NewMembers(cfg.MembersFile())
	keys, err = members.Keys(kernel)
	var missing error
	if len(keys) == 0 {
		_, missing = members.Find(kernel)
	}
	err = errors.Join(err, members.Close())
	if kernel == cfg.Cluster.Name {
		key, err := access.ReadHostKey(access.HostKeyFile(cfg.StateDir))
		if err != nil {
			return nil, err
		}
		return append(keys, key.Key()), nil
	}
	return keys, errors.Join(err, missing)
}

// verifyKernel verifies the copy of a kernel's journal on the bus.
func (a *app) verifyKernel(ctx context.Context, kernel string) error {
	return a.onBus(ctx, func(ctx context.Context, cfg *config.Config, _ *cluster.Conn, js cluster.Streams) error {
		keys, err := keysOf(cfg, kernel)
		if err != nil {
			return err
		}
		report, err := cluster.Verify(ctx, js, kernel, keys, nil)
		if err != nil {
			return err
		}
		return a.printStream(report, "")
	})
}
