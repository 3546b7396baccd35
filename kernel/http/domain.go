// Package http gives meaning to Http.Fetch, which is judged here before it is done outside the kernel.
package http

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Domain has no state: a request leaves nothing in the kernel but its entries.
type Domain struct{}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain.
func New() *Domain { return &Domain{} }

// Decide answers the syscalls of schema.Http.
func (*Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.HTTPFetchInput:
		return fetch(call, in)
	case *schema.EffectEnd:
		return kernel.End(in)
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// fetch refuses what needs no network to be refused. Hosts are judged by who fetches, on redirects too.
func fetch(call *kernel.Call, in *schema.HTTPFetchInput) (kernel.Result, error) {
	if call.PID != kernel.Operator && (call.Token == nil || len(call.Token.Fetch(call.Tick)) == 0) {
		return kernel.Result{}, kernel.NoHost(call.PID, call.Token, call.Tick)
	}
	if in.Body != nil && in.BodyRef != nil {
		return kernel.Result{}, kernel.Invalid("bodyRef", "stands in place of body: send one of the two")
	}
	method := "GET"
	if in.Method != nil {
		method = *in.Method
	}
	if (method == "POST" || method == "PUT") && in.Body == nil && in.BodyRef == nil {
		return kernel.Result{}, kernel.Invalid("body", "is missing: %s sends one, be it empty", method)
	}
	if in.BodyRef != nil {
		if fault := in.BodyRef.Valid("bodyRef"); fault != nil {
			return kernel.Result{}, fault
		}
	}
	return kernel.Begin(in), nil
}

// Apply has nothing to change.
func (*Domain) Apply(*kernel.Call) {}

// Snapshot writes nothing.
func (*Domain) Snapshot() func(write func(chunk []byte) error) error {
	return func(func([]byte) error) error { return nil }
}

// Reset has nothing to forget.
func (*Domain) Reset() {}

// Restore refuses every chunk: none was written.
func (*Domain) Restore([]byte) error { return errors.New("restore http domain: it has no state") }
