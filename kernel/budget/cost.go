package budget

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// cost is what a call needs before it may begin.
type cost struct {
	amounts
	below amounts // given to a child
	asks  bool    // a request to a model: something must be left, whatever it reserves
}

// costOf is the cost of a call. Calls that every process may make, looking at budgets, and saying when the use of a tool, which was paid
// for, begins and ends are free.
func costOf(call *kernel.Call) (c cost) {
	row := call.Syscall
	if row == nil || row.Grant == schema.Everyone || row == schema.BudgetShow.Row() ||
		row == schema.StepBegin.Row() || row == schema.StepEnd.Row() || row == schema.PromptSubmit.Row() {
		return c
	}
	switch row {
	case schema.NetConnect.Row():
		if in, ok := call.Input.(*schema.NetConnectInput); ok && in.Port > 0 { // else it only resolves a name
			c.amounts[fetches] = 1
		}
		return c
	case schema.NetRequest.Row():
		c.asks = true
		c.amounts[fetches] = 1
		if in, ok := call.Input.(*schema.NetRequestInput); ok {
			c.amounts[tokens], c.amounts[dollars] = in.MaxTokens, in.MaxMicroUSD
		}
		return c
	}
	if row.Internal {
		return c
	}
	c.amounts[calls] = 1
	if row == schema.HTTPFetch.Row() {
		c.amounts[fetches] = 1
	}
	var child *schema.SpawnCapability
	switch in := call.Input.(type) {
	case *schema.SpawnInput:
		child = in.Capabilities
	case *schema.AttachInput:
		child = in.Capabilities
	}
	if child != nil {
		c.below, _ = limits(child.Budget)
	}
	return c
}

// costOfRequest is what a finished request to a model has cost in tokens and dollars.
func costOfRequest(end *schema.EffectEnd, held amounts) (c amounts) {
	data, failure := end.Result()
	if failure != nil {
		if end.Unknown {
			return held
		}
		return c // it never reached the model
	}
	out, err := schema.NetRequest.Output().Decode(data)
	if err != nil {
		return held
	}
	o := out.(*schema.NetRequestOutput)
	if o.Usage != nil {
		c[tokens], c[dollars] = o.Usage.Input+o.Usage.Output, o.Usage.MicroUSD
	}
	switch {
	case o.Usage != nil && !o.Usage.Estimated && o.Ended == schema.NetComplete, o.Status >= 400:
		return c
	}
	for k := range c { // its usage is not known
		c[k] = max(c[k], held[k])
	}
	return c
}

// refused reports whether a failed call is free: it was refused, or not carried out for a reason of the kernel's.
func refused(f *fault.Fault) bool {
	switch f.Kind {
	case fault.Unauthenticated, fault.Forbidden, fault.QuotaExceeded, fault.Ended, fault.Pending:
		return true
	}
	return f.Code() >= 500
}
