package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

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
