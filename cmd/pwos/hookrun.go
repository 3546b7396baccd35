package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

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
	agent, tell := door.Agent{Via: "hook"}, false
	cmd := &cobra.Command{
		Use:   "run claude|codex",
		Short: "answer a host's question, on stdin",
		Long: `A host with the hook starts run before each use of a tool. run reads the host's question
from stdin, and asks the kernel. If the tool is granted, it prints nothing, and the host
continues as without a hook. Otherwise, and if the kernel cannot be reached within 10 s,
does not answer within 55 s (the use may wait for an approval), or sends an invalid
answer, it prints the reason to stderr and exits with 2, which denies the use.

A use that is granted begins a step, which ends when the host tells that the tool has
ended. An event that tells something denies nothing: exit status 0.`,
		Example: `  pwos hook run claude --as claude < question.json`,
		Args:    cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: hookNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := hook.Read(args[0], a.Stdin)
			switch {
			case err != nil && (tell || q != nil):
				a.Say("the host's question is invalid: %v", err)
			case err != nil:
				return a.deny("the host's question is invalid, so the tool is denied: " + err.Error())
			case q.Use != nil:
				if why := a.toolUse(cmd.Context(), q, &agent); why != "" {
					return a.deny(why)
				}
			case q.End != nil:
				if err := a.endStep(cmd.Context(), q.End, &agent); err != nil {
					a.Say("a step does not end: %v", err)
				}
			}
			return nil
		},
	}
	addAgent(cmd, &agent)
	cmd.Flags().BoolVar(&tell, "tell", false, "the host only tells: a question that cannot be read denies nothing")
	return cmd
}

func (a *app) deny(why string) error {
	fmt.Fprintf(a.Stderr, "pwos: %s\n", why)
	return exitDeny
}

// addAgent adds the flags that select the process to act as.
func addAgent(cmd *cobra.Command, agent *door.Agent) {
	cmd.Flags().StringVar(&agent.Name, "as", "", "name of the process to act as")
	cmd.Flags().StringSliceVar(&agent.Allow, "allow", nil, "what a new process may call, as in cap grant, separated by commas; may be repeated")
}

// within returns a context that ends after d.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fault.CallTimeout.New("no answer within %v", d))
}

// toolUse asks the kernel whether a tool may be used, and begins its step. It returns why the tool is denied; "" if it is allowed.
func (a *app) toolUse(ctx context.Context, q *hook.Question, agent *door.Agent) string {
	name := "Tool:" + q.Use.Host + "/" + q.Use.Tool
	asking, cancel := within(ctx, hookTime)
	defer cancel()
	c, pid, err := a.dialAs(asking, agent)
	if err != nil {
		return fmt.Sprintf("the kernel could not be asked whether %s may be used, so it is denied: %v", name, err)
	}
	defer func() { _ = c.Close() }() // only the answers matter
	out, err := client.Call(asking, c, schema.HostToolUse, q.Use)
	switch {
	case errors.Is(err, fault.CapabilityDenied):
		return fmt.Sprintf("pid %d may use no tool of %s: allow this one with %s", pid, q.Use.Host, quote.Command("pwos", "cap", "grant", strconv.FormatInt(pid, 10), "--add", name))
	case errors.Is(err, fault.Pending), errors.Is(err, fault.ApprovalRefused):
		return fmt.Sprintf("%s may not be used: %v", name, err)
	case fault.Of(err).ID.Domain() == fault.PolicyDenied.Domain():
		return name + " is denied: " + fault.Of(err).Text()
	case err != nil:
		return fmt.Sprintf("the kernel gave no answer whether %s may be used, so it is denied: %v", name, err)
	case out.Decision != schema.ToolAllow:
		return out.Reason
	}
	latest, _ := asking.Deadline()
	beginning, cancel := within(ctx, max(stepTime, time.Until(latest)))
	defer cancel()
	_, err = client.Call(beginning, c, schema.StepBegin, q.Begin)
	if err != nil && !errors.Is(err, fault.WireUnknownSyscall) { // an older kernel has no steps
		a.Say("%s is allowed, and what it changes is not kept as a step: %v", name, err)
	}
	return ""
}

// endStep tells the kernel that a tool was used.
func (a *app) endStep(ctx context.Context, end *schema.StepEndInput, agent *door.Agent) error {
	ctx, cancel := within(ctx, hookTime)
	defer cancel()
	c, _, err := a.dialAs(ctx, agent)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only the answer matters
	_, err = client.Call(ctx, c, schema.StepEnd, end)
	if errors.Is(err, fault.WireUnknownSyscall) || errors.Is(err, fault.CapabilityDenied) {
		return nil // nothing has begun: the kernel is older and has no steps, or the process may use no tool
	}
	return err
}

// dialAs connects to the kernel as the process that the hook acts as.
func (a *app) dialAs(ctx context.Context, agent *door.Agent) (*client.Client, int64, error) {
	reach, cancel := within(ctx, reachTime)
	defer cancel()
	c, err := a.DialRunning(reach)
	if err != nil {
		return nil, 0, fmt.Errorf(`%w: start it with "pwosd" or any call of pwos, and try again`, err)
	}
	pid, err := agent.Become(reach, c, func(string, ...any) {})
	if err != nil {
		_ = c.Close() // the connection is of no use
		return nil, 0, err
	}
	return c, pid, nil
}
