// Package http implements Http.Fetch: it decides here whether a fetch may be done outside the kernel.
package http

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Check refuses a fetch that can be refused without network, because of its arguments or its caller. It depends on
// the arguments and the configuration only.
type Check func(call *kernel.Call, in *schema.HTTPFetchInput) *fault.Fault

// Domain has no state: a request leaves only entries in the kernel.
type Domain struct {
	kernel.Stateless
	kernel.Handlers
	check Check
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain. Fetches that check allows are begun, and checked again at each redirect.
func New(check Check) *Domain {
	d := &Domain{check: check}
	d.Handlers = kernel.Bind(schema.Http,
		kernel.Effect(schema.HTTPFetch, d.fetch),
		kernel.Step(schema.HTTPFetch.End, kernel.End, nil),
	)
	return d
}

// fetch refuses what can be refused without the network: such a call is one entry, and no request
// is begun.
func (d *Domain) fetch(call *kernel.Call, in *schema.HTTPFetchInput) (*schema.HTTPFetchInput, error) {
	if refused := d.check(call, in); refused != nil {
		return nil, refused
	}
	if in.BodyRef == nil && in.BodyContent != nil {
		return nil, kernel.Invalid("bodyContent", "goes with bodyRef")
	}
	if in.BodyRef != nil {
		if in.Body != nil {
			return nil, kernel.Invalid("bodyRef", "replaces body: send one of the two")
		}
		if invalid := in.BodyRef.Valid("bodyRef"); invalid != nil {
			return nil, invalid
		}
	}
	return in, nil
}
