// Package door attaches a connection of a door to the process that the door acts as (PROTOCOL 11).
//
// A door connects programs that do not speak the kernel's protocol. It connects as the operator, and gives up that
// authority with Process.Attach before it serves a program. A door that runs inside an agent acts as that agent.
package door

import (
	"context"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Agent describes the process that a door acts as.
type Agent struct {
	Name  string   // agent id; may be empty inside an agent
	Allow []string // the grant of a new process; nil: the default grant
	Via   string   // name of the door, context.via in rules; empty: no name
}

// Become attaches a connection of the operator to the process, and returns the PID. A connection that already acts as a process
// stays that process. If the process exists with another grant than Allow, Become calls note, and the process keeps its grant.
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
		// The operator changed the grant later: it takes precedence.
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

// Absent returns what a model is told, beside the error, about a call for whose approval nobody was there in time; "" for any other error.
func Absent(err error) string {
	if !errors.Is(err, fault.ApprovalPending) {
		return ""
	}
	return ". A person was asked, and was not there to answer in time. Go on with something else, and do not look for another way to do this. " +
		"The question stays open: once it is answered, exactly the same call goes through, or is refused"
}
