package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door/mcp/upstream"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// addedServer is an MCP server that was added.
type addedServer struct {
	name  string
	agent *schema.Descriptor // nil: it has ended
	tools []string           // that are accepted
}

// entries are the MCP servers that were added, by name.
func entries(ctx context.Context, c *client.Client) ([]*addedServer, error) {
	list, err := client.Call(ctx, c, schema.SyscallList, &schema.ListInput{})
	if err != nil {
		return nil, err
	}
	processes, err := client.Call(ctx, c, schema.ProcessList, &schema.ProcessListInput{})
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*addedServer)
	of := func(name string) *addedServer {
		if byName[name] == nil {
			byName[name] = &addedServer{name: name}
		}
		return byName[name]
	}
	for _, path := range list.Paths {
		if entry, ok := schema.MCPEntry(path); ok {
			e := of(strings.TrimPrefix(entry, "mcp/"))
			if tool, ok := strings.CutPrefix(path, entry+"/"); ok {
				e.tools = append(e.tools, tool)
			}
		}
	}
	for i, p := range processes.Processes {
		name, ok := strings.CutPrefix(p.AgentID, "mcp.")
		if ok && p.ParentPID == 0 && p.State != terminated && schema.ValidMCPName(name) {
			of(name).agent = &processes.Processes[i]
		}
	}
	var all []*addedServer
	for _, e := range byName {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *addedServer) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// findEntry returns the server of a name, nil where there is none.
func findEntry(ctx context.Context, c *client.Client, name string) (*addedServer, error) {
	all, err := entries(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.name == name {
			return e, nil
		}
	}
	return nil, nil
}

// entryNamed is findEntry for who needs one.
func entryNamed(ctx context.Context, c *client.Client, name string) (*addedServer, error) {
	e, err := findEntry(ctx, c, name)
	if err == nil && e == nil {
		err = fault.SyscallNotFound.New(`there is no MCP server %s: "pwos mcp ls" shows those there are`, name)
	}
	return e, err
}

// askOffer asks what a server offers now. An agent that is yet to speak is waited for.
func askOffer(ctx context.Context, c *client.Client, name string) (*upstream.Offer, error) {
	all := &upstream.Offer{}
	for after := int64(0); ; {
		input, err := schema.Marshal(&upstream.OfferInput{After: after})
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
		decoded, failure := schema.TypeOf[upstream.Offer]().Decode(*out)
		if failure != nil {
			return nil, failure
		}
		page := decoded.(*upstream.Offer)
		if page.Away != "" {
			return nil, fault.ProviderAway.New(`the MCP server %s is away: %s; what it has written is in "pwos logs mcp.%s"`, name, page.Away, name)
		}
		all.Executable, all.Tools = page.Executable, append(all.Tools, page.Tools...)
		if page.Next <= after {
			return all, nil
		}
		after = page.Next
	}
}

// What has become of a tool since it was accepted.
const (
	changeNew     = "new"
	changeChanged = "changed"
	changeGone    = "gone"
	changeUnfit   = "unfit" // it cannot be accepted
)

// mcpChange is how what a server offers differs from what was accepted.
type mcpChange struct {
	Tool   string         `json:"tool"`
	Change string         `json:"change"`
	Why    string         `json:"why,omitzero"`
	Was    *upstream.Tool `json:"was,omitzero"`
	Now    *upstream.Tool `json:"now,omitzero"`
}

// executableTool stands for the executable in a list of changes: no tool can have the name.
const executableTool = "(executable)"

// changesOf compares what a server offers with what was accepted.
func changesOf(ctx context.Context, c *client.Client, e *addedServer, offer *upstream.Offer) ([]mcpChange, error) {
	entry := "mcp/" + e.name
	var changes []mcpChange
	pinned, err := client.Call(ctx, c, schema.SyscallDescribe, &schema.DescribeInput{Name: entry})
	if err != nil {
		return nil, err
	}
	if pin := upstream.Pinned(pinned.Input); pin != "" && offer.Executable != pin {
		changes = append(changes, mcpChange{Tool: executableTool, Change: changeChanged, Why: fmt.Sprintf("it was %s, and is %s", pin, offer.Executable)})
	}
	offered := make(map[string]bool)
	for i := range offer.Tools {
		t := &offer.Tools[i]
		if t.Unfit != "" {
			changes = append(changes, mcpChange{Tool: t.Name, Change: changeUnfit, Why: t.Unfit})
			offered[t.Name] = offered[t.Name] || !slices.Contains(e.tools, t.Name)
			continue
		}
		offered[t.Name] = true
		if !slices.Contains(e.tools, t.Name) {
			changes = append(changes, mcpChange{Tool: t.Name, Change: changeNew, Now: t})
			continue
		}
		d, err := client.Call(ctx, c, schema.SyscallDescribe, &schema.DescribeInput{Name: entry + "/" + t.Name})
		if err != nil {
			return nil, err
		}
		was := &upstream.Tool{Name: t.Name, Kind: d.Kind, Description: d.Description, Input: d.Input, Output: d.Output}
		if was.Registration(entry).Digest() != t.Registration(entry).Digest() {
			changes = append(changes, mcpChange{Tool: t.Name, Change: changeChanged, Was: was, Now: t})
		}
	}
	for _, tool := range e.tools {
		if !offered[tool] {
			changes = append(changes, mcpChange{Tool: tool, Change: changeGone})
		}
	}
	return changes, nil
}

// acceptTools accepts what a server offers now, of tools alone those that are named where any are. It returns what has changed.
func (a *app) acceptTools(ctx context.Context, c *client.Client, name string, only []string) ([]mcpChange, error) {
	e, err := entryNamed(ctx, c, name)
	if err != nil {
		return nil, err
	}
	offer, err := askOffer(ctx, c, name)
	if err != nil {
		return nil, err
	}
	changes, err := changesOf(ctx, c, e, offer)
	if err != nil {
		return nil, err
	}
	for _, tool := range only {
		if !slices.ContainsFunc(changes, func(ch mcpChange) bool { return ch.Tool == tool }) {
			return nil, fault.SyscallNotFound.New(`nothing has changed of %s/%s: "pwos mcp diff %s" shows what has`, name, tool, name)
		}
	}
	if only != nil {
		changes = slices.DeleteFunc(changes, func(ch mcpChange) bool { return !slices.Contains(only, ch.Tool) })
	}
	for i := range changes {
		if err := accept(ctx, c, "mcp/"+name, &changes[i], offer); err != nil {
			return nil, fmt.Errorf("accept %s/%s: %w", name, changes[i].Tool, err)
		}
	}
	return changes, nil
}

// accept has the kernel take a change in.
func accept(ctx context.Context, c *client.Client, entry string, ch *mcpChange, offer *upstream.Offer) error {
	path, register := entry+"/"+ch.Tool, (*schema.RegisterInput)(nil)
	switch {
	case ch.Change == changeUnfit:
		return nil
	case ch.Tool == executableTool:
		path, register = entry, upstream.Entry(entry, offer.Executable)
	case ch.Now != nil:
		register = ch.Now.Register(entry)
	}
	if ch.Change != changeNew {
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
