package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// entryNamed is findEntry where there has to be one.
func entryNamed(ctx context.Context, c *client.Client, name string) (*addedServer, error) {
	e, err := findEntry(ctx, c, name)
	if err == nil && e == nil {
		err = fault.SyscallNotFound.New(`there is no MCP server %s: "pwos mcp ls" shows those there are`, name)
	}
	return e, err
}

// offer is what the server offers now.
func (e *addedServer) offer(ctx context.Context, c *client.Client) (*upstream.Offer, error) {
	if e.agent == nil {
		return nil, fault.ProviderAway.New(`the agent of the MCP server %s has ended: "pwos mcp rm %[1]s" takes it away, so that it can be added again`, e.name)
	}
	return upstream.Ask(ctx, c, e.name)
}

// acceptTools accepts what a server offers now, of tools alone those that are named where any are. It returns what has changed.
func (a *app) acceptTools(ctx context.Context, c *client.Client, name string, only []string) ([]upstream.Change, error) {
	e, err := entryNamed(ctx, c, name)
	if err != nil {
		return nil, err
	}
	offer, err := e.offer(ctx, c)
	if err != nil {
		return nil, err
	}
	changes, err := upstream.Changes(ctx, c, e.name, e.tools, offer)
	if err != nil {
		return nil, err
	}
	for _, tool := range only {
		if !slices.ContainsFunc(changes, func(ch upstream.Change) bool { return ch.Tool == tool }) {
			return nil, fault.SyscallNotFound.New(`nothing has changed of %s/%s: "pwos mcp diff %s" shows what has`, name, tool, name)
		}
	}
	if only != nil {
		changes = slices.DeleteFunc(changes, func(ch upstream.Change) bool { return !slices.Contains(only, ch.Tool) })
	}
	for i := range changes {
		if err := changes[i].Accept(ctx, c, name, offer); err != nil {
			return nil, fmt.Errorf("accept %s/%s: %w", name, changes[i].Tool, err)
		}
	}
	if offer.Away != "" && only == nil { // the executable was all that was known of it
		more, err := a.acceptTools(ctx, c, name, nil)
		return append(changes, more...), err
	}
	return changes, nil
}
