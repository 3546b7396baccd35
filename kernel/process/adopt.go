package process

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Ingest is the work of Kernel.Ingest outside the kernel: the phases Fetch, Validate and Load. It ends in a
// schema.Adoption.
type Ingest struct {
	URI, Base, Integrity string
}

// ingest begins Kernel.Ingest. Nothing changes before its outcome is in the journal.
func (d *Domain) ingest(call *kernel.Call, in *schema.IngestInput) (*Ingest, error) {
	if err := d.able(call.PID); err != nil {
		return nil, err
	}
	return &Ingest{URI: in.URI, Base: d.base(call.PID, call.Origin), Integrity: said(in.Integrity, "")}, nil
}

// able refuses a call as a process that has ended or never existed.
func (d *Domain) able(pid int64) error {
	switch {
	case pid == kernel.Operator || d.table.alive(pid):
		return nil
	case d.table.Process(pid) != nil:
		return kernel.Ended(pid)
	}
	return fault.ProcessNeverWas.New("pid %d never existed: nothing was done", pid).With("pid", strconv.FormatInt(pid, 10))
}

// adopted is the result of an ingest, up to a megabyte, and its answer.
type adopted struct {
	in    *schema.Adoption
	reply schema.Value
	err   error
}

// Prepare implements kernel.Preparer.
func (d *Domain) Prepare(call *kernel.Call) {
	if end, ok := call.Input.(*schema.EffectEnd); ok && call.Syscall == schema.KernelIngest.End.Syscall {
		call.Prepared = brought(end)
	}
}

func brought(end *schema.EffectEnd) *adopted {
	in, err := adoption(end)
	if err != nil {
		return &adopted{err: err}
	}
	is := &in.Identity
	reply, err := schema.Marshal(&schema.IngestOutput{
		ContextID: is.ContextID, Phases: []string{"fetch", "validate", "load", "adopt"},
		URI: is.URI, Digest: is.Digest, Proof: is.Proof, Content: &in.Content,
	})
	return &adopted{in: in, reply: reply, err: err}
}

// adopt decides Process.Adopted, the commit point of an ingest, on the present state.
func (d *Domain) adopt(call *kernel.Call, end *schema.EffectEnd) (schema.Value, error) {
	a, prepared := call.Prepared.(*adopted)
	if !prepared {
		a = brought(end)
		call.Prepared = a
	}
	if a.err != nil {
		return nil, a.err
	}
	if err := d.able(end.PID); err != nil {
		return nil, err
	}
	if !d.contexts.room(d.originOf(end.PID, call.Origin), a.in) {
		return nil, fault.IngestNoRoom.New(
			"the context store has no room: all that the processes of one origin have adopted may have %d bytes", MaxContexts).
			WithFix("end some, or have them adopt less")
	}
	return a.reply, nil
}

// adoption decodes the result of an ingest.
func adoption(end *schema.EffectEnd) (*schema.Adoption, error) {
	data, failure := end.Result()
	if failure != nil {
		return nil, failure
	}
	in, err := schema.TypeOf[schema.Adoption]().Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read the outcome of an ingest: %w", err)
	}
	return in.(*schema.Adoption), nil
}

// originOf is the origin of a process; for the operator it is the call's.
func (d *Domain) originOf(pid int64, call string) string {
	if p := d.table.Process(pid); p != nil {
		return p.Origin
	}
	return call
}

// applyAdopt switches the identity. It retains the new content before it releases the old one, which may be the same.
func (d *Domain) applyAdopt(e *kernel.Entry, end *schema.EffectEnd) {
	var in *schema.Adoption
	if a, prepared := e.Prepared.(*adopted); prepared {
		in = a.in
	} else if read, err := adoption(end); err != nil {
		panic("process: " + err.Error()) // no kernel has written that
	} else {
		in = read
	}
	origin, identity := d.originOf(end.PID, e.Origin), in.Identity
	d.contexts.hold(origin, in)
	if end.PID == kernel.Operator {
		d.contexts.release(origin, (*d.contexts.operator)[origin])
		all := maps.Clone(*d.contexts.operator) // the view shows the old one
		all[origin] = &identity
		d.contexts.operator = &all
		return
	}
	p, _ := d.table.processes.Get(end.PID)
	d.contexts.release(origin, p.Identity)
	next := *p
	next.Identity = &identity
	d.table.processes.Set(end.PID, &next)
	d.view.touch(end.PID)
}

// identity is what a process has adopted, nil if nothing.
func (d *Domain) identity(pid int64, origin string) *schema.Identity {
	if pid == kernel.Operator {
		return (*d.contexts.operator)[origin]
	}
	if p, ok := d.table.processes.Get(pid); ok {
		return p.Identity
	}
	return nil
}

// base is the base of a process's relative names.
func (d *Domain) base(pid int64, origin string) string {
	if identity := d.identity(pid, origin); identity != nil {
		return identity.URI
	}
	return ""
}

// Adopted implements kernel.Identities.
func (v *Processes) Adopted(pid int64, origin string) *schema.Identity {
	if pid == kernel.Operator {
		return (*v.operator.Load())[origin]
	}
	if p := v.Process(pid); p != nil {
		return p.Identity
	}
	return nil
}
