// Package door turns a connection to the kernel into the process that a door serves (PROTOCOL 11).
//
// A door connects programs that do not speak the kernel's protocol. It connects as the operator, and gives up that
// authority with Process.Attach before it serves a program. A door that is opened inside an agent acts as that agent.
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
	Name  string   // empty if the connection belongs to an agent
	Allow []string // the grant of a new process; nil: the default grant
	Via   string   // name of the door, context.via in rules; empty: no name
}

// Become attaches a connection to the process, and returns its PID. It calls note if the process has another
// grant than the requested one.
func (a *Agent) Become(ctx context.Context, c *client.Client, note func(format string, args ...any)) (int64, error) {
	pid, err := c.SelfPID(ctx)
	if err != nil || pid != 0 {
		return pid, err
	}
	if a.Name == "" {
		return 0, fault.UsageInvalid.New("--as NAME is required: the process to act as").With("verb", "pwos mcp serve")
	}
	out, err := a.attach(ctx, c, a.Allow)
	if a.Allow != nil && errors.Is(err, fault.ProcessOtherGrant) {
		// A later grant takes precedence.
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

// attach attaches a connection of the operator to the process.
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
