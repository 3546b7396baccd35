package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
)

// spawnFlags are the flags of `pwos spawn`.
type spawnFlags struct {
	in    schema.SpawnInput
	grant schema.SpawnCapability
	line  profile.Line
}

func newSpawn(a *app) *cobra.Command {
	var f spawnFlags
	cmd := &cobra.Command{
		Use:   "spawn NAME",
		Short: "add a process to the kernel's table",
		Long: `spawn adds a process: an agent with its own PID, capability and mailbox. It
starts no program. spawn prints its PID and name.

Without --allow it is granted the default: the ten syscalls of the capability model,
Ipc.Receive, and 200 units of each resource, cut down to what its parent holds. A quota
bounds what is held at once. Quotas, budgets, hosts and an expiry need --allow.

--on NAME spawns it at another kernel of the cluster, under that kernel's process for this one,
kernel-THIS, and with at most what that has (docs/cluster.md).

Exit status: 3 more than the parent may grant, 6 the other kernel is away, 1 no resource
or syscall has that name.`,
		Example: `  pwos spawn scout
  pwos spawn scout --intent 'look ahead' --priority HIGH --allow 'Memory.*,SYS_SEND_MSG' --quota gpu=2
  pwos spawn helper --parent 7
  pwos spawn worker --on beta --allow Memory.Get`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.Show(cmd.Context(), schema.SyscallSpawn.Type, in, a.PrintValue)
		},
	}
	cli.MemberFlag(cmd, &f.in, "intent", "intent", "its purpose, in words")
	cli.MemberFlag(cmd, &f.in, "role", "role", "its role in a larger task, in words")
	cli.MemberFlag(cmd, &f.in, "priority", "priority", "LOW, NORMAL, HIGH or URGENT (default NORMAL)")
	addSettings(cmd.Flags(), &f.line, "allow", "quota", "host", "http-plain", "http-open", "budget")
	cli.MemberFlag(cmd, &f.grant, "expires_at_tick", "expires-at-tick", "last tick at which its grant is valid (default: it does not expire)")
	cli.MemberFlag(cmd, &f.in, "kernel", "on", "kernel of the cluster that it is spawned at")
	a.AgentFlag(cmd, &f.in, "pid", "parent", "process that spawns it (default 0, the operator)")
	return cmd
}

// input returns the spawn that the command line describes. Its errors are usage errors.
func (f *spawnFlags) input(agent string) (*schema.SpawnInput, error) {
	in, grant := &f.in, &f.grant
	in.ChildAgentID = agent
	if agent == "" {
		return nil, errors.New("NAME must not be empty")
	}
	if given := f.line.Profile().Capability(); given != nil {
		given.ExpiresAtTick, grant = grant.ExpiresAtTick, given
	}
	switch {
	case grant.AllowedSyscalls != nil:
		in.Capabilities = grant
	case grant.ResourceQuotas != nil || grant.ExpiresAtTick != nil || grant.HTTP != nil, grant.Budget != nil:
		return nil, errors.New("--quota, --host, --budget and --expires-at-tick are part of a grant: say with --allow what it may call")
	}
	return in, nil
}
