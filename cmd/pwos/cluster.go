package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

func newAuditMirror(a *app) *cobra.Command {
	var kernels []string
	cmd := &cobra.Command{
		Use:   "mirror DIR",
		Short: "keep a checked copy of the journals of a cluster",
		Long: `mirror copies the journals on the bus, each to DIR/NAME, and checks them: the chain, and
the signatures with the keys in the members file. Copies that exist in DIR are compared
with the bus. It needs neither this kernel nor the others. "pwos audit verify DIR/NAME"
reads such a copy.

Exit status: 10 a journal on the bus is not what its kernel wrote.`,
		Example: `  pwos audit mirror /backup/journals
  pwos audit mirror /backup/journals --kernel beta`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onBus(cmd.Context(), func(ctx context.Context, cfg *config.Config, _ *cluster.Conn, js cluster.Streams) error {
				if len(kernels) == 0 {
					var err error
					if kernels, err = journalsOn(ctx, cfg, js, args[0]); err != nil {
						return err
					}
				}
				var all error
				for _, kernel := range kernels {
					all = errors.Join(all, a.mirror(ctx, cfg, js, kernel, filepath.Join(args[0], kernel)))
				}
				return all
			})
		},
	}
	cmd.Flags().StringArrayVar(&kernels, "kernel", nil, "only the journal of this kernel; may be repeated (default: all kernels with a journal on the bus)")
	return cmd
}

// knownKernels returns the names of this kernel and of those in the members file, sorted.
func knownKernels(cfg *config.Config) ([]string, error) {
	members := cluster.NewMembers(cfg.MembersFile())
	list, _, err := members.List()
	if err := errors.Join(err, members.Close()); err != nil {
		return nil, err
	}
	known := []string{cfg.Cluster.Name}
	for _, member := range list {
		known = append(known, member.Kernel)
	}
	slices.Sort(known)
	return slices.Compact(known), nil
}

// journalsOn returns the known kernels that have a journal on the bus, or a copy in dir.
func journalsOn(ctx context.Context, cfg *config.Config, js jetstream.JetStream, dir string) ([]string, error) {
	known, err := knownKernels(cfg)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, name := range known {
		switch _, err := js.Stream(ctx, cluster.Stream(name)); {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				there = append(there, name)
			}
		case err != nil:
			return nil, fault.ClusterBus.New("open stream: %v", err)
		default:
			there = append(there, name)
		}
	}
	return there, nil
}

func (a *app) mirror(ctx context.Context, cfg *config.Config, js jetstream.JetStream, kernel, dir string) error {
	if !access.KernelName(kernel) {
		return cli.Misuse("pwos audit mirror", fmt.Errorf("--kernel takes the name of a kernel, not %q", kernel))
	}
	keys, err := keysOf(cfg, kernel)
	if err != nil {
		return err
	}
	report, err := cluster.Mirror(ctx, js, kernel, keys, dir)
	if err != nil {
		return err
	}
	return a.printStream(report, dir)
}

// printStream prints a report about a stream, and returns its finding if the stream is forged or damaged.
func (a *app) printStream(r *cluster.Report, dir string) error {
	o := view.Object(nil).Text("kernel", r.Kernel).Boolean("ok", r.Finding == nil).
		Integer("entries", int64(r.Entries)).Integer("messages", int64(r.Messages)).Integer("bytes", r.Bytes).
		Raw("head", view.Object(nil).Integer("seq", int64(r.Head.Seq)).Text("hash", r.Head.Hash.String()).Close()).
		Integer("vouched", int64(r.Vouched))
	result := a.Style(view.Good, "nothing contradicts the record")
	if r.Finding != nil {
		o, result = o.Text("finding", r.Finding.Error()), a.Style(view.Bad, "not what the kernel wrote")
	}
	t := new(view.Table)
	t.Row("kernel", view.Escaped(r.Kernel))
	t.Row("result", result)
	t.Row("entries", fmt.Sprintf("%d, in %d messages, %d bytes", r.Entries, r.Messages, r.Bytes))
	t.Row("head", fmt.Sprintf("entry %d, %s", r.Head.Seq, r.Head.Hash))
	t.Row("signed", "up to entry "+strconv.FormatUint(r.Vouched, 10))
	if dir != "" {
		o = o.Text("dir", dir)
		t.Row("copy", view.Escaped(dir))
	}
	if err := a.PrintEither(o.Close(), t); err != nil || r.Finding == nil {
		return err
	}
	return r.Finding
}
