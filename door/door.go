// Package door makes a connection to the kernel the process that a door serves (PROTOCOL 11).
//
// A door is a way into the kernel for programs that do not speak to it themselves. It connects as the operator and gives that power up
// before it serves anybody, with Process.Attach. Whatever process of an agent's tree opens a door, it is that agent.
package door

import (
	"context"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Agent says which process a door is.
type Agent struct {
	Name  string   // empty where the connection is an agent's already
	Allow []string // what it is granted where it is made new; nil: the default grant
	Via   string   // which door it is, as context.via of a rule has it; empty: none that has a name
}

// Become makes a connection the process, and returns its PID. note is told where the process has another grant than asked for.
func (a *Agent) Become(ctx context.Context, c *client.Client, note func(format string, args ...any)) (int64, error) {
	pid, err := c.Who(ctx)
	if err != nil || pid != 0 {
		return pid, err
	}
	if a.Name == "" {
		return 0, fault.UsageInvalid.New("--as NAME says which process to be").With("verb", "pwos mcp serve")
	}
	out, err := a.attach(ctx, c, a.Allow)
	if a.Allow != nil && errors.Is(err, fault.ProcessOtherGrant) {
		// It was granted something else since: what it has is the operator's last word.
		note("%v", err)
		out, err = a.attach(ctx, c, nil)
	}
	if err != nil {
		return 0, err
	}
	if out.PID <= 0 {
		return 0, fmt.Errorf("attach to %s: the kernel answered pid %d", a.Name, out.PID)
	}
	return out.PID, nil
}

// attach makes a connection of the operator's the process.
func (a *Agent) attach(ctx context.Context, c *client.Client, allow []string) (*schema.AttachOutput, error) {
	in := &schema.AttachInput{AgentID: a.Name}
	if a.Via != "" {
		in.Via = &a.Via
	}
	if allow != nil {
		in.Capabilities = &schema.SpawnCapability{AllowedSyscalls: allow}
	}
	return client.Call(ctx, c, schema.ProcessAttach, in)
}
