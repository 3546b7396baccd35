package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"github.com/promptware-os/pwos/kernel"
)

// contextAttribute is a member of context that rules may read, beside args. All that the policy knows of one is in its row.
type contextAttribute struct {
	name   string
	need   string // the same as a member of needs
	typ    resolved.IsType
	values []string // those that it can have, "" first; nil: any
	exact  bool     // the exception for a call names its value
	of     func(*kernel.Call) types.Value
}

// exhausted is the member of needs for context.exhausted.
const exhausted = ".exhausted"

var contextAttributes = []contextAttribute{
	{name: "tick", need: ".tick", typ: resolved.LongType{}, of: func(c *kernel.Call) types.Value { return types.Long(c.Tick) }},
	{ // how the call reaches the kernel (PROTOCOL 10)
		name: "via", need: ".via", typ: resolved.StringType{}, exact: true,
		values: []string{"socket", "channel", "inline", "mcp", "hook", "job", "cluster"},
		of:     func(c *kernel.Call) types.Value { return types.String(cmp.Or(c.Caller.Via, "socket")) },
	},
	{ // the kind of budget of which the call needs more than is left
		name: "exhausted", need: exhausted, typ: resolved.StringType{}, exact: true,
		values: []string{"", "calls", "fetches", "tokens", "usd", "wall_seconds"},
		of:     func(c *kernel.Call) types.Value { return types.String(c.Exhausted) },
	},
}

// neededAttribute returns the attribute of a member of needs; nil if it is one of args, or unknown.
func neededAttribute(need string) *contextAttribute {
	if i := slices.IndexFunc(contextAttributes, func(a contextAttribute) bool { return a.need == need }); i >= 0 {
		return &contextAttributes[i]
	}
	return nil
}

// impossible says why the attribute is never equal to a text; empty: it can be.
func (a *contextAttribute) impossible(text string) string {
	if a.values == nil || slices.Contains(a.values, text) {
		return ""
	}
	which := a.values
	some := ""
	if which[0] == "" {
		which, some = which[1:], `"" or `
	}
	return fmt.Sprintf("%q can never match: context.%s is %sone of %s", text, a.name, some, strings.Join(which, ", "))
}
