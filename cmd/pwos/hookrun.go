package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// exitDeny is the exit status with which a hook of Claude Code or Codex denies a tool.
const exitDeny cli.ExitStatus = 2

func newHookRun(a *app) *cobra.Command {
	agent := door.Agent{Via: "hook"}
	cmd := &cobra.Command{
		Use:   "run claude|codex",
		Short: "answer a host's question, on stdin",
		Long: `A host with the hook starts run before each use of a tool. run reads the host's question
from stdin, and asks the kernel. If the tool is granted, it prints nothing, and the host
continues as without a hook. Otherwise, and if the kernel cannot be reached within 10 s,
does not answer within 55 s (the use may wait for an approval), or sends an invalid
answer, it prints the reason to stderr and exits with 2, which denies the use.`,
		Example: `  pwos hook run claude --as claude < question.json`,
		Args:    cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: hookNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), hookTime, fault.CallTimeout.New("no answer within %v", hookTime))
			defer cancel()
			if why := a.toolUse(ctx, args[0], &agent); why != "" {
				fmt.Fprintf(a.Stderr, "pwos: %s\n", why)
				return exitDeny
			}
			return nil
		},
	}
	addAgent(cmd, &agent)
	return cmd
}

// addAgent adds the flags that select the process to act as.
func addAgent(cmd *cobra.Command, agent *door.Agent) {
	cmd.Flags().StringVar(&agent.Name, "as", "", "name of the process to act as")
	cmd.Flags().StringSliceVar(&agent.Allow, "allow", nil, "what a new process may call, as in cap grant, separated by commas; may be repeated")
}

// toolUse asks the kernel about the question on stdin. It returns why the tool is denied; "" if it is allowed.
func (a *app) toolUse(ctx context.Context, host string, agent *door.Agent) string {
	in, err := hook.Read(host, a.Stdin)
	if err != nil {
		return "the host's question is invalid, so the tool is denied: " + err.Error()
	}
	name := "Tool:" + in.Host + "/" + in.Tool
	reach, cancel := context.WithTimeoutCause(ctx, reachTime, fault.CallTimeout.New("no answer within %v", reachTime))
	defer cancel()
	c, err := a.DialRunning(reach)
	if err != nil {
		return fmt.Sprintf(`the kernel could not be asked whether %s may be used, so it is denied: %v: start it with "pwosd" or any call of pwos, and try again`, name, err)
	}
	defer func() { _ = c.Close() }() // only the answer matters
	pid, err := agent.Become(reach, c, func(string, ...any) {})
	if err != nil {
		return fmt.Sprintf("the kernel could not be asked whether %s may be used, so it is denied: %v", name, err)
	}
	out, err := client.Call(ctx, c, schema.HostToolUse, in)
	switch {
	case errors.Is(err, fault.CapabilityDenied):
		return fmt.Sprintf("pid %d may use no tool of %s: allow this one with %s", pid, in.Host, quote.Command("pwos", "cap", "grant", strconv.FormatInt(pid, 10), "--add", name))
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
