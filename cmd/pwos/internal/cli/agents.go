package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// named is an agent of the command line whose PID is looked up once a kernel is connected.
type named struct {
	arg.Agent

	verb string
	to   *int64
	at   *KernelChoice // the kernels that the verb asks; nil: the connected one
}

// unknown is the PID of an agent that was not looked up yet. No process has it.
const unknown = -1

// Agent parses an agent into *to. WithKernel looks up the PID of one that is given by name, before it calls its function; until then *to
// is no process's.
func (a *App) Agent(cmd *cobra.Command, text string, who arg.Who, to *int64) error {
	_, err := a.take(cmd, text, who, to, nil)
	return err
}

// Address is Agent for an agent of any kernel: it returns the other kernel's name, or nil.
func (a *App) Address(cmd *cobra.Command, text string, who arg.Who, to *int64) (kernel *string, err error) {
	who.Abroad = true
	agent, err := a.take(cmd, text, who, to, nil)
	if err == nil && agent.Kernel != "" {
		kernel = &agent.Kernel
	}
	return kernel, err
}

func (a *App) take(cmd *cobra.Command, text string, who arg.Who, to *int64, at *KernelChoice) (arg.Agent, error) {
	agent, err := arg.ParseAgent(text, who)
	if err != nil {
		return agent, err
	}
	*to = agent.PID
	if agent.Name != "" || at != nil {
		a.named = append(a.named, named{agent, cmd.CommandPath(), to, at})
	}
	if agent.Name != "" {
		*to = unknown
	}
	return agent, nil
}

// agentFlag is a flag value: an agent, which a member of a call's data names.
type agentFlag struct {
	member

	app *App
	cmd *cobra.Command
	at  *KernelChoice
}

// AgentFlag adds a flag for an agent that sets a member of a call's data.
func (a *App) AgentFlag(cmd *cobra.Command, in any, member, name, what string) {
	cmd.Flags().Var(agentFlag{MemberOf(in, member), a, cmd, nil}, name, what)
}

// AgentFlagAt is AgentFlag for a verb that asks the kernels of at: there NAME@KERNEL selects the kernel too.
func (a *App) AgentFlagAt(cmd *cobra.Command, at *KernelChoice, in any, member, name, what string) {
	cmd.Flags().Var(agentFlag{MemberOf(in, member), a, cmd, at}, name, what)
}

// Type implements pflag.Value.
func (f agentFlag) Type() string { return "agent" }

// Set implements pflag.Value.
func (f agentFlag) Set(text string) error {
	to := f.target()
	f.app.named = slices.DeleteFunc(f.app.named, func(n named) bool { return n.to == to }) // the last value of a flag counts
	who := f.who()
	who.Abroad = f.at != nil
	agent, err := f.app.take(f.cmd, text, who, to, f.at)
	if err != nil {
		return unfit(": " + err.Error())
	}
	if agent.Kernel != "" && f.at.name != "" && string(f.at.name) != agent.Kernel {
		return unfit(fmt.Sprintf(": %q is not of the kernel %s, which --kernel names", text, f.at.name))
	}
	if agent.Kernel != "" {
		f.at.name = KernelName(agent.Kernel)
	}
	return nil
}

// operand sets the member from an argument: an agent if it is a PID, else a string.
func (a *App) operand(cmd *cobra.Command, m member, text string) error {
	if m.Type() == "string" {
		return m.Set(text)
	}
	return a.Agent(cmd, text, m.who(), m.target())
}

// LookUp sets the PIDs of the agents that the command line names. WithKernel does it.
func (a *App) LookUp(ctx context.Context, c *client.Client) error {
	for _, n := range a.named {
		if err := a.lookUpOne(ctx, c, &n); err != nil {
			return err
		}
	}
	a.named = nil
	return nil
}

func (a *App) lookUpOne(ctx context.Context, c *client.Client, n *named) (err error) {
	kernel := n.Kernel
	if n.at != nil {
		chosen := string(n.at.name)
		if kernel != "" && chosen != kernel {
			return Misuse(n.verb, fmt.Errorf("--kernel %s and an agent of the kernel %s exclude each other: give one of them", chosen, kernel))
		}
		kernel = chosen
	}
	if n.Name == "" {
		return nil
	}
	if kernel != "" || n.at != nil && n.at.All {
		own, others, err := kernelsOf(ctx, c)
		switch {
		case err != nil:
			return err
		case kernel == "" && len(others) > 0:
			return Misuse(n.verb, fmt.Errorf("%q may be an agent of each kernel: give %s@KERNEL", n.Name, quote.Word(n.Name)))
		case kernel == own:
			kernel = ""
		}
	}
	if kernel != "" {
		other, err := a.DialWith(ctx, Dialing{kernel: kernel})
		if err != nil {
			return err
		}
		defer CloseInto(&err, other)
		c = other
	}
	processes, err := ListProcesses(ctx, c, nil)
	if err != nil {
		return fmt.Errorf("find the agent %q: %w", n.Name, err)
	}
	pid, err := pidNamed(processes, n.Name)
	if errors.Is(err, errSeveral) {
		return Misuse(n.verb, err)
	}
	*n.to = pid
	return err
}

// errSeveral reports that several agents have a name.
var errSeveral = errors.New("several agents have this name")

// pidNamed returns the PID of the agent with a name: the one that lives, else the last that ended.
func pidNamed(processes []view.Process, name string) (int64, error) {
	var living []string
	var last, lives int64
	for i := range processes {
		p := &processes[i]
		switch {
		case p.AgentID != name:
		case p.State != view.Terminated:
			living = append(living, fmt.Sprintf("pid %d (%s)", p.PID, quote.Word(p.Origin)))
			lives = p.PID
		default:
			last = max(last, p.PID)
		}
	}
	switch {
	case len(living) > 1:
		return 0, fmt.Errorf("%w, %q: %s; give the PID", errSeveral, name, strings.Join(living, " and "))
	case len(living) == 1:
		return lives, nil
	case last != 0:
		return last, nil
	}
	if like := alike(processes, name); like != "" {
		return 0, fault.ProcessNotFound.New("no agent has the name %q; did you mean %s?", name, quote.Word(like))
	}
	return 0, fault.ProcessNotFound.New("no agent has the name %q", name).WithFix(`"pwos ps --all" lists the agents`)
}

// alike returns the name most like one that no agent has: that of an agent which an agent of another name made, or the nearest.
func alike(processes []view.Process, name string) string {
	var below []string
	for i := range processes {
		if p := &processes[i]; p.State != view.Terminated && strings.HasSuffix(p.AgentID, "/"+name) {
			below = append(below, p.AgentID)
		}
	}
	if len(below) == 1 {
		return below[0]
	}
	return schema.Nearest(name, func(yield func(string) bool) {
		for i := range processes {
			if p := &processes[i]; p.State != view.Terminated && !yield(p.AgentID) {
				return
			}
		}
	})
}
