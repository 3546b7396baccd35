package main

import (
	"errors"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/view"
)

func newRestore(a *app) *cobra.Command {
	var here, agents bool
	cmd := &cobra.Command{
		Use:   "restore --here",
		Short: "make a kernel of its own of a copied state directory",
		Long: `restore is for a state directory that is a copy: of another machine, from a backup, or
moved to another file system. A kernel does not start on one, since it could run the
agents of the first one a second time. restore --here begins another epoch of the
record, with a host key of its own, which the record's next entry names. It needs the
directory for itself: no kernel may run on it.

The programs of the agents stay where they are, and are not started until you say so:
with --agents now, or by "pwos restore --here --agents" later. The processes can be
looked at and ended meanwhile.

Clients sign nothing for a host key that they do not know: confirm the new one with
"pwos auth trust FINGERPRINT".`,
		Example: `  pwos restore --here
  pwos restore --here --agents`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !here {
				return usage(cmd, errors.New("say which directory: --here is the state directory of this environment"))
			}
			made, err := daemon.Restore(cmd.Context(), nil, os.Getenv, a.stderr, agents)
			if err != nil {
				return err
			}
			return a.printRestored(made)
		},
	}
	cmd.Flags().BoolVar(&here, "here", false, "restore the state directory of this environment")
	cmd.Flags().BoolVar(&agents, "agents", false, "let the programs of agents be started at the next start")
	return cmd
}

func (a *app) printRestored(made daemon.Restored) error {
	key, _, err := access.ParsePublicKey(made.HostKey)
	if err != nil {
		return err
	}
	o := view.Object(nil).Text("state_dir", made.StateDir).Text("instance", made.Instance).Integer("epoch", made.Epoch).
		Text("host_key", key.Fingerprint()).Boolean("fresh", made.Fresh).Integer("agents_held", int64(made.Held))
	t := new(view.Table)
	t.Row("state directory", view.Escaped(made.StateDir))
	t.Row("instance", made.Instance+", epoch "+strconv.FormatInt(made.Epoch, 10))
	t.Row("host key", key.Fingerprint())
	if made.Held > 0 {
		t.Row("agents held", strconv.Itoa(made.Held)+`: "pwos restore --here --agents" lets them start`)
	}
	if made.Fresh {
		t.Row("next", `"pwos auth trust `+key.Fingerprint()+`" where keys are asked for, then start the kernel`)
	}
	return a.printEither(o.Close(), t)
}
