package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/mcp/upstream"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newMCP(a *app) *cobra.Command {
	return cli.Group("mcp", "connect hosts and servers of the Model Context Protocol",
		`mcp connects hosts of the Model Context Protocol, such as Claude Code, Codex and
VS Code, to the kernel, which checks and records their calls. It also
runs MCP servers in a sandbox, and offers their tools as syscalls.`,
		`  pwos mcp serve --as claude --allow 'Memory.*'
  pwos mcp install claude --allow 'Memory.*'
  pwos mcp add fs --dir ~/project -- mcp-server-filesystem .`,
		newMCPServe(a), newMCPInstall(a), newMCPUninstall(a),
		newMCPAdd(a), newMCPLogin(a), newMCPImport(a), newMCPLs(a), newMCPDiff(a), newMCPAccept(a), newMCPRm(a), newMCPBridge(a))
}

// addedServer is an MCP server that was added.
type addedServer struct {
	name  string
	agent *schema.Descriptor // nil: its agent has terminated
	tools []string           // names of the accepted tools
}

// entries returns the added MCP servers, sorted by name.
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
		if ok && p.ParentPID == 0 && p.State != view.Terminated && schema.ValidMCPName(name) {
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

// findEntry returns the server with that name; nil if there is none.
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

// entryNamed is findEntry, but returns an error if there is none.
func entryNamed(ctx context.Context, c *client.Client, name string) (*addedServer, error) {
	e, err := findEntry(ctx, c, name)
	if err == nil && e == nil {
		err = fault.SyscallNotFound.New(`there is no MCP server %s: "pwos mcp ls" shows those there are`, name)
	}
	return e, err
}

// offer requests the server's current offer.
func (e *addedServer) offer(ctx context.Context, c *client.Client) (*upstream.Offer, error) {
	if e.agent == nil {
		return nil, fault.ProviderAway.New("the agent of the MCP server %s has ended: %s takes it away, so that it can be added again", e.name, upstream.Command("rm", e.name))
	}
	return upstream.Ask(ctx, c, e.name)
}

// mcpRow is a row of `pwos mcp ls`.
type mcpRow struct {
	Name    string `json:"name"`
	PID     int64  `json:"pid"` // 0: the agent has terminated
	State   string `json:"state"`
	Tools   int64  `json:"tools"`   // number of accepted tools
	Changes int64  `json:"changes"` // number of changes that are not accepted
	Server  string `json:"server"`
}

func newMCPLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "list the MCP servers that were added",
		Long: `ls lists the MCP servers that were added: the PID of each agent, whether the server
answers, how many of its tools are accepted, how many changes wait for "pwos mcp accept",
and what it runs.`,
		Example: `  pwos mcp ls`,
		Args:    cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, a.listServers)
		},
	}
}

// listServers prints the added servers.
func (a *app) listServers(ctx context.Context, c *client.Client) error {
	all, err := entries(ctx, c)
	if err != nil {
		return err
	}
	rows := make([]mcpRow, len(all))
	for i, e := range all {
		if rows[i], err = rowOf(ctx, c, e); err != nil {
			return err
		}
	}
	if a.WantsJSON() || len(rows) == 0 {
		return cli.PrintEach(a.App, rows)
	}
	data, err := schema.Marshal(rows)
	if err != nil {
		return err
	}
	return a.Print(view.TableOf(data).Text())
}

// lookTime is the time limit of `pwos mcp ls` for each server.
const lookTime = 3 * time.Second

// rowOf asks a server for its state and its changes.
func rowOf(ctx context.Context, c *client.Client, e *addedServer) (mcpRow, error) {
	row := mcpRow{Name: e.name, State: "ended", Tools: int64(len(e.tools))}
	if e.agent == nil {
		return row, nil
	}
	row.PID, row.Server = e.agent.PID, serverOf(e.agent.Command)
	look, cancel := context.WithTimeoutCause(ctx, lookTime, fault.CallTimeout.New("it did not answer within %v", lookTime))
	defer cancel()
	offer, err := upstream.Ask(look, c, e.name)
	switch {
	case ctx.Err() != nil:
		return row, context.Cause(ctx)
	case err != nil:
		row.State = "away"
		return row, nil
	}
	changes, err := upstream.Changes(ctx, c, e.name, e.tools, offer)
	if err != nil {
		return row, err
	}
	row.State = "running"
	for _, ch := range changes {
		if ch.Change != upstream.Unfit {
			row.Changes++
		}
	}
	return row, nil
}

// serverOf returns the server's part of its agent's command, which is pwos mcp bridge NAME -- COMMAND, or --url URL.
func serverOf(command []string) string {
	const before = 5
	if len(command) <= before {
		return ""
	}
	return strings.Join(command[before:], " ")
}

func newMCPRm(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME",
		Short: "remove an MCP server",
		Long: `rm ends the agent of an MCP server, with all that it started, and removes its tools and its
login.`,
		Example: `  pwos mcp rm fs`,
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE: a.Asking(func(ctx context.Context, c *client.Client, args []string) error {
			e, err := entryNamed(ctx, c, args[0])
			if err != nil {
				return err
			}
			if e.agent != nil {
				if _, err := client.Call(ctx, c, schema.SyscallTerminate, &schema.TerminateInput{TargetPID: e.agent.PID}); err != nil {
					return err
				}
			}
			paths := []string{"mcp/" + e.name} // the entry comes last: rm can find the server until it is removed
			for _, tool := range e.tools {
				paths = append([]string{"mcp/" + e.name + "/" + tool}, paths...)
			}
			for _, path := range paths {
				_, err := client.Call(ctx, c, schema.SyscallUnregister, &schema.UnregisterInput{Name: path})
				if err != nil && !errors.Is(err, fault.SyscallNotFound) {
					return err
				}
			}
			_, err = client.Call(ctx, c, schema.MemoryDelete, &schema.MemoryDeleteInput{Key: loginKey(e.name)})
			if err != nil && !errors.Is(err, fault.MemoryNotFound) {
				return err
			}
			return nil
		}),
	}
}
