// Package door makes a connection to the kernel the process that a door serves (PROTOCOL 11).
//
// A door is a way into the kernel for programs that do not speak its protocol. It connects as the operator and,
// before it serves anybody, gives that authority up with Process.Attach. A door that a process of an agent's tree
// opens is that agent.
package door

import (
	"context"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Agent is the process that a door becomes.
type Agent struct {
	Name  string   // empty if the connection is an agent's already
	Allow []string // the grant of a new process; nil: the default grant
	Via   string   // the door, context.via in rules; empty: none that has a name
}

// Become makes a connection the process, and returns its PID. It calls note if the process has another grant than
// asked for.
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
		// It was granted something else since, which takes precedence.
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

// attach makes a connection of the operator the process.
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
