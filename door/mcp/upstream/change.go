package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Ask returns the present offer of a server, all pages of it. If the server's agent has not connected yet, Ask waits for it.
func Ask(ctx context.Context, c *client.Client, name string) (*Offer, error) {
	all := &Offer{}
	for after := int64(0); ; {
		input, err := schema.Marshal(&OfferInput{After: after})
		if err != nil {
			return nil, err
		}
		out, err := backoff.Retry(ctx, func() (*schema.Value, error) {
			out, err := client.Call(ctx, c, schema.SyscallCall, &schema.CallInput{Syscall: "os/mcp/" + name, Args: []schema.Value{input}})
			if err != nil && !errors.Is(err, fault.ProviderAway) {
				return nil, backoff.Permanent(err)
			}
			return out, err
		}, backoff.WithBackOff(&backoff.ExponentialBackOff{InitialInterval: 20 * time.Millisecond, Multiplier: 1.5, MaxInterval: time.Second}),
			backoff.WithMaxElapsedTime(0))
		if err != nil {
			return nil, err
		}
		decoded, failure := schema.TypeOf[Offer]().Decode(*out)
		if failure != nil {
			return nil, failure
		}
		page := decoded.(*Offer)
		if page.Away != "" && page.Executable != "" {
			return page, nil // nothing else is known until the executable is accepted
		}
		if page.Away != "" {
			return nil, fault.ProviderAway.New(`the MCP server %s is away: %s; "pwos mcp ls" shows its PID, and "pwos logs PID" its messages`, name, page.Away)
		}
		all.Executable, all.Tools = page.Executable, append(all.Tools, page.Tools...)
		if page.Next <= after {
			return all, nil
		}
		after = page.Next
	}
}

// The kinds of a Change.
const (
	New     = "new"
	Changed = "changed"
	Gone    = "gone"
	Unfit   = "unfit" // it cannot be accepted
)

// Change is a difference between a server's offer and the accepted tools.
type Change struct {
	Tool   string `json:"tool"`
	Change string `json:"change"`
	Why    string `json:"why,omitzero"`
	Was    *Tool  `json:"was,omitzero"`
	Now    *Tool  `json:"now,omitzero"`
}

// Executable is the name of the server's program in a list of changes. It is not valid as the name of a tool.
const Executable = "(executable)"

// Changes returns the differences between a server's offer and the accepted tools.
func Changes(ctx context.Context, c *client.Client, name string, accepted []string, offer *Offer) ([]Change, error) {
	entry := "mcp/" + name
	var changes []Change
	pinned, err := client.Call(ctx, c, schema.SyscallDescribe, &schema.DescribeInput{Name: entry})
	if err != nil {
		return nil, err
	}
	if offer.Executable != "" {
		changes = append(changes, Change{Tool: Executable, Change: Changed, Why: fmt.Sprintf("it was %s, and is %s", Pinned(pinned.Input), offer.Executable)})
	}
	if offer.Away != "" {
		return changes, nil
	}
	offered := make(map[string]bool)
	for i := range offer.Tools {
		t := &offer.Tools[i]
		if t.Unfit != "" {
			changes = append(changes, Change{Tool: t.Name, Change: Unfit, Why: t.Unfit})
			offered[t.Name] = offered[t.Name] || !slices.Contains(accepted, t.Name)
			continue
		}
		offered[t.Name] = true
		if !slices.Contains(accepted, t.Name) {
			changes = append(changes, Change{Tool: t.Name, Change: New, Now: t})
			continue
		}
		d, err := client.Call(ctx, c, schema.SyscallDescribe, &schema.DescribeInput{Name: entry + "/" + t.Name})
		if err != nil {
			return nil, err
		}
		was := &Tool{Name: t.Name, Kind: d.Kind, Description: d.Description, Input: d.Input, Output: d.Output}
		if was.Registration(entry).Digest() != t.Registration(entry).Digest() {
			changes = append(changes, Change{Tool: t.Name, Change: Changed, Was: was, Now: t})
		}
	}
	for _, tool := range accepted {
		if !offered[tool] {
			changes = append(changes, Change{Tool: tool, Change: Gone})
		}
	}
	return changes, nil
}

// Accept applies a change to the kernel's registrations, as the operator. It does nothing for an unfit tool.
func (ch *Change) Accept(ctx context.Context, c *client.Client, name string, offer *Offer) error {
	entry := "mcp/" + name
	path, register := entry+"/"+ch.Tool, (*schema.RegisterInput)(nil)
	switch {
	case ch.Change == Unfit:
		return nil
	case ch.Tool == Executable:
		path, register = entry, Entry(entry, offer.Executable)
	case ch.Now != nil:
		register = ch.Now.Register(entry)
	}
	if ch.Change != New {
		if _, err := client.Call(ctx, c, schema.SyscallUnregister, &schema.UnregisterInput{Name: path}); err != nil {
			return err
		}
	}
	if register == nil {
		return nil
	}
	_, err := client.Call(ctx, c, schema.SyscallRegister, register)
	return err
}
