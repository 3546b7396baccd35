package process

import (
	"context"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Explainer says what a program would have around it. It is called on a goroutine.
type Explainer func(context.Context, *schema.Program) (schema.Surroundings, error)

// SetExplainer sets who answers Process.Explain. Without one, it is refused.
func (d *Domain) SetExplainer(e Explainer) { d.explains.Store(&e) }

// explain answers Process.Explain: it decides as Syscall.Spawn does, and begins nothing.
func (d *Domain) explain(call *kernel.Call, in *schema.SpawnInput) (out schema.ExplainOutput, _ error) {
	explains := d.explains.Load()
	switch {
	case explains == nil:
		return out, fault.KernelUnsupported.New("this kernel hosts no programs")
	case in.Abroad():
		return out, kernel.Invalid("kernel", "is for a process of another kernel: ask that one")
	case in.Command == nil:
		return out, kernel.Invalid("command", "must name a program")
	}
	in = d.cut(call, in)
	if err := d.checkProgram(call, &in.Program); err != nil {
		return out, err
	}
	grant, err := d.grant(call, d.table.next, in.Capabilities)
	if err != nil {
		return out, err
	}
	program := d.inherited(call.PID, in.Program)
	kernel.Compute(call, func(ctx context.Context) (out schema.ExplainOutput, err error) {
		out.Surroundings, err = (*explains)(ctx, &program)
		room := explainedRoom
		for _, list := range []*[]string{&out.Write, &out.Masked, &out.Held, &out.Kept, &out.NotKept, &out.Secret, &out.Read, &out.Hidden} {
			*list = fitting(*list, &room)
		}
		out.Capabilities = schema.SpawnCapability{
			AllowedSyscalls: grant.AllowedSyscalls, ResourceQuotas: grant.ResourceQuotas, ExpiresAtTick: grant.ExpiresAtTick,
			HTTP: grant.HTTP, Budget: grant.Budget,
		}
		return out, err
	})
	return out, nil
}

// explainedRoom bounds the lists of an answer, in bytes, so that it fits into a line.
const explainedRoom = 8000

// fitting returns the elements of a list for which there is room.
func fitting(list []string, room *int) []string {
	fit := []string{}
	for _, one := range list[:min(len(list), schema.MaxExplained)] {
		if *room -= len(one) + 3; *room < 0 { // with quotes and a comma
			*room = 0
			break
		}
		fit = append(fit, one)
	}
	return fit
}
