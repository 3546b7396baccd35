package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// exitDeny is the exit status by which a hook of Claude Code and of Codex denies; what it has written to stderr is the reason.
const exitDeny exitStatus = 2

// How long a hook may take to reach the kernel, and in all, since its call may wait for an approval; and how long a host waits for it:
// longer, so that the hook is the one that refuses.
const (
	reachTime = 10 * time.Second
	hookTime  = 55 * time.Second
	hostTime  = 60 * time.Second
)

func newHookRun(a *app) *cobra.Command {
	agent := door.Agent{Via: "hook"}
	cmd := &cobra.Command{
		Use:   "run claude|codex",
		Short: "answer a host's question, on stdin",
		Long: `run is what "pwos hook install" has a host start before each use of a tool. It reads the
host's question from stdin, and asks the kernel. Where the tool is granted it says
nothing, and the host goes on as it would have without a hook. Otherwise, and where the
kernel cannot be reached within 10 s, does not answer within 55 s (the use may wait for
an approval), or answers something else, it writes why to stderr and exits with 2, which
denies the use.`,
		Example: `  pwos hook run claude --as claude < question.json`,
		Args:    arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: hookNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), hookTime, fault.CallTimeout.New("no answer within %v", hookTime))
			defer cancel()
			if why := a.toolUse(ctx, args[0], &agent); why != "" {
				fmt.Fprintf(a.stderr, "pwos: %s\n", why)
				return exitDeny
			}
			return nil
		},
	}
	addAgent(cmd, &agent)
	return cmd
}

// addAgent adds the flags that say which process to be.
func addAgent(cmd *cobra.Command, agent *door.Agent) {
	cmd.Flags().StringVar(&agent.Name, "as", "", "name of the process to be")
	cmd.Flags().StringSliceVar(&agent.Allow, "allow", nil, "what a new process may call, as in cap grant, separated by commas; may be given again")
}

// toolUse asks the kernel about the question on stdin, and returns why the tool is not to be used; "" where it may be.
func (a *app) toolUse(ctx context.Context, host string, agent *door.Agent) string {
	in, err := hook.Read(host, a.stdin)
	if err != nil {
		return "the host asked what cannot be understood, so it is denied: " + err.Error()
	}
	name := "Tool:" + in.Host + "/" + in.Tool
	reach, cancel := context.WithTimeoutCause(ctx, reachTime, fault.CallTimeout.New("no answer within %v", reachTime))
	defer cancel()
	c, err := a.dialRunning(reach)
	if err != nil {
		return fmt.Sprintf(`the kernel could not be asked whether %s may be used, so it is denied: %v: start it with "pwosd" or any call of pwos, and try again`, name, err)
	}
	defer func() { _ = c.Close() }() // the answer is all there is
	pid, err := agent.Become(reach, c, func(string, ...any) {})
	if err != nil {
		return fmt.Sprintf("the kernel could not be asked whether %s may be used, so it is denied: %v", name, err)
	}
	out, err := client.Call(ctx, c, schema.HostToolUse, in)
	switch {
	case errors.Is(err, fault.CapabilityDenied):
		return fmt.Sprintf(`pid %d may use no tool of %s: allow this one with "pwos cap grant %d --add %s", or all with "--add Host.ToolUse"`, pid, in.Host, pid, name)
	case errors.Is(err, fault.Pending), errors.Is(err, fault.ApprovalRefused):
		return fmt.Sprintf("%s may not be used: %v", name, err)
	case fault.Of(err).ID.Domain() == fault.PolicyDenied.Domain():
		return name + " is denied: " + fault.Of(err).Text()
	case err != nil:
		return fmt.Sprintf("the kernel gave no answer whether %s may be used, so it is denied: %v", name, err)
	case out.Decision == schema.ToolAllow:
		return ""
	}
	return out.Reason
}
