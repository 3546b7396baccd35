package process

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// KeyIntent begins the intent of a key's process; the fingerprint follows. With the operator as its parent, which no agent
// can be, it tells whose the process is after a restart, whatever its agent_id.
const KeyIntent = "key:"

// attach answers Process.Attach (PROTOCOL 11). The connection becomes the process once it has the answer.
func (d *Domain) attach(call *kernel.Call, in *schema.AttachInput) (out schema.AttachOutput, _ error) {
	if err := checkAgentID("agent_id", in.AgentID); err != nil {
		return out, err
	}
	if call.Refused != nil {
		return out, call.Refused
	}
	found := d.table.names[sibling{call.PID, call.Origin, in.AgentID}]
	if len(found) == 0 {
		child := d.table.next
		return schema.AttachOutput{PID: child, AgentID: in.AgentID, Created: true}, d.prepare(call, child, in.Capabilities)
	}
	p := d.table.Process(found[0])
	switch {
	case p.Command != nil:
		return out, taken(p, "runs a program")
	case strings.HasPrefix(p.Intent, KeyIntent):
		return out, taken(p, "belongs to a key of authorized_keys")
	}
	return schema.AttachOutput{PID: p.PID, AgentID: p.AgentID}, d.sameGrant(call, p, in.Capabilities)
}

// taken is the fault of an attempt to attach to a process that is somebody else's.
func taken(p *schema.Descriptor, why string) *fault.Fault {
	return fault.ProcessTaken.New("pid %d has this name already, and %s", p.PID, why).With("pid", strconv.FormatInt(p.PID, 10))
}

// sameGrant refuses capabilities other than those that a process was granted; none asked for are fine.
func (d *Domain) sameGrant(call *kernel.Call, p *schema.Descriptor, asked *schema.SpawnCapability) error {
	if asked == nil {
		return nil
	}
	grant, err := d.grant(call, p.PID, asked)
	if err != nil {
		return err
	}
	want, err := kernel.NewGrant(grant, call.PID, d.pools, schema.Registrable)
	if err != nil {
		return err
	}
	budgeted := asked.Budget == nil || d.budgets != nil && d.budgets.Same(p.PID, asked.Budget)
	if token := d.tokens.Token(p.PID); token != nil && budgeted && equal(&token.Granted.TokenGrant, want) {
		return nil
	}
	return fault.ProcessOtherGrant.New("pid %d has this name already, and was granted something else: \"pwos cap show %[1]d\" tells what", p.PID).
		WithFix("leave capabilities out, or make them what it has").With("pid", strconv.FormatInt(p.PID, 10))
}

// equal reports whether two grants say the same.
func equal(a, b *schema.TokenGrant) bool {
	one, err := schema.Marshal(a)
	other, err2 := schema.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

// applyAttach adds the process, where the call has made it.
func (d *Domain) applyAttach(e *kernel.Entry, _ *schema.AttachInput) {
	if out := kernel.Reply[schema.AttachOutput](e, schema.ProcessAttach.Output()); out.Created {
		d.born(e, d.child(e, out.AgentID))
	}
}
