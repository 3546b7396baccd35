package process

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Ingest is what Kernel.Ingest needs done outside: the phases Fetch, Validate and Load. It ends in a schema.Adoption.
type Ingest struct {
	URI, Base, Integrity string
}

// ingest begins Kernel.Ingest. Nothing has happened before its outcome is in the journal.
func (d *Domain) ingest(call *kernel.Call, in *schema.IngestInput) (kernel.Result, error) {
	if err := d.able(call.PID); err != nil {
		return kernel.Result{}, err
	}
	return kernel.Begin(&Ingest{URI: in.URI, Base: d.base(call.PID, call.Origin), Integrity: said(in.Integrity, "")}), nil
}

// able refuses what a process that is not there, or not any more, cannot do.
func (d *Domain) able(pid int64) error {
	switch {
	case pid == kernel.Operator || d.table.alive(pid):
		return nil
	case d.table.Process(pid) != nil:
		return kernel.Gone(pid)
	}
	return schema.Errorf(schema.Conflict, "pid %d never was a process: nothing was done", pid)
}

// ended decides the commands that end what was done outside.
func (d *Domain) ended(call *kernel.Call, in *schema.EffectEnd) (kernel.Result, error) {
	data, fault := in.Result()
	if fault != nil {
		return kernel.Result{}, fault
	}
	switch in.Type {
	case "Kernel.Ingest":
		return d.adopt(call, in)
	case schema.CallType:
		return called(data)
	}
	return kernel.Result{Data: bytes.Clone(data)}, nil
}

// adopt decides Process.Adopted, the commit point of an ingest, on what is the case now.
func (d *Domain) adopt(call *kernel.Call, end *schema.EffectEnd) (kernel.Result, error) {
	in, err := adoption(end)
	if err != nil {
		return kernel.Result{}, err
	}
	if err := d.able(end.PID); err != nil {
		return kernel.Result{}, err
	}
	if !d.contexts.room(d.originOf(call, end.PID), in) {
		return kernel.Result{}, schema.Errorf(schema.Insufficient,
			"the context store has no room: what the processes of one origin have adopted may have %d bytes in all: end some, or have them adopt less", MaxContexts)
	}
	is := &in.Identity
	return answer(&schema.IngestOutput{
		ContextID: is.ContextID, Phases: []string{"fetch", "validate", "load", "adopt"},
		URI: is.URI, Digest: is.Digest, Proof: is.Proof, Content: &in.Content,
	})
}

// adoption reads what an ingest has brought.
func adoption(end *schema.EffectEnd) (*schema.Adoption, error) {
	data, fault := end.Result()
	if fault != nil {
		return nil, fault
	}
	in, fault := schema.TypeOf[schema.Adoption]().Decode(data)
	if fault != nil {
		return nil, fmt.Errorf("read what an ingest brings: %w", fault)
	}
	return in.(*schema.Adoption), nil
}

// originOf is the origin of a process, which is that of the call where it is the operator's.
func (d *Domain) originOf(call *kernel.Call, pid int64) string {
	if p := d.table.Process(pid); p != nil {
		return p.Origin
	}
	return call.Origin
}

// adopted applies Process.Adopted: the identity is switched. The content is held before the one that it replaces is let
// go, which may be the same.
func (d *Domain) adopted(call *kernel.Call, end *schema.EffectEnd) {
	in, err := adoption(end)
	if err != nil {
		panic("process: " + err.Error()) // the journal holds what Decide never let through
	}
	origin, identity := d.originOf(call, end.PID), in.Identity
	d.contexts.hold(origin, in)
	if end.PID == kernel.Operator {
		d.contexts.release(origin, (*d.contexts.operator)[origin])
		all := maps.Clone(*d.contexts.operator) // the view shows the one before
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

// identity is what a process has adopted, nil where nothing.
func (d *Domain) identity(pid int64, origin string) *schema.Identity {
	if pid == kernel.Operator {
		return (*d.contexts.operator)[origin]
	}
	if p, ok := d.table.processes.Get(pid); ok {
		return p.Identity
	}
	return nil
}

// base is what the relative names of a process are beside.
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
