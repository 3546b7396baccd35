// Package http gives meaning to Http.Fetch, which is judged here before it is done outside the kernel.
package http

import (
	"errors"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Check refuses a fetch that needs no network to be refused, for what it asks for or for who asks. It follows from its
// arguments and the configuration alone.
type Check func(call *kernel.Call, in *schema.HTTPFetchInput) *fault.Fault

// Domain has no state: a request leaves nothing in the kernel but its entries.
type Domain struct {
	kernel.Handlers
	check Check
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain. What check lets through is begun, and judged again where it leads elsewhere.
func New(check Check) *Domain {
	d := &Domain{check: check}
	d.Handlers = kernel.Bind(schema.Http,
		kernel.Effect(schema.HTTPFetch, d.fetch),
		kernel.Step(schema.HTTPFetch.End, kernel.End, nil),
	)
	return d
}

// fetch refuses what needs no network to be refused: such a call is one entry, and nothing is begun.
func (d *Domain) fetch(call *kernel.Call, in *schema.HTTPFetchInput) (*schema.HTTPFetchInput, error) {
	if refused := d.check(call, in); refused != nil {
		return nil, refused
	}
	if in.BodyRef == nil && in.BodyContent != nil {
		return nil, kernel.Invalid("bodyContent", "goes with bodyRef")
	}
	if in.BodyRef != nil {
		if in.Body != nil {
			return nil, kernel.Invalid("bodyRef", "stands in place of body: send one of the two")
		}
		if invalid := in.BodyRef.Valid("bodyRef"); invalid != nil {
			return nil, invalid
		}
	}
	return in, nil
}

// Snapshot writes nothing.
func (*Domain) Snapshot() func(write func(chunk []byte) error) error {
	return func(func([]byte) error) error { return nil }
}

// Reset has nothing to forget.
func (*Domain) Reset() {}

// Restore refuses every chunk: none was written.
func (*Domain) Restore([]byte) error { return errors.New("restore http domain: it has no state") }
