package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/mcp/upstream"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// acceptTools accepts the server's current offer, or only the named tools if only is not nil. It returns the accepted changes.
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
			return nil, fault.SyscallNotFound.New("nothing has changed of %s/%s: %s shows what has", name, tool, upstream.Command("diff", name))
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
	if offer.Away != "" && only == nil { // this offer had only the executable: ask again for the tools
		more, err := a.acceptTools(ctx, c, name, nil)
		return append(changes, more...), err
	}
	return changes, nil
}

func newMCPDiff(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME",
		Short: "show how an MCP server differs from what was accepted",
		Long: `diff asks an MCP server for its present offer, and shows the difference to what was
accepted: tools that are new, changed, removed, or not acceptable, with the
accepted and the offered form. It prints nothing if nothing differs.`,
		Example: `  pwos mcp diff fs`,
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE: a.Asking(func(ctx context.Context, c *client.Client, args []string) error {
			e, err := entryNamed(ctx, c, args[0])
			if err != nil {
				return err
			}
			offer, err := e.offer(ctx, c)
			if err != nil {
				return err
			}
			changes, err := upstream.Changes(ctx, c, e.name, e.tools, offer)
			if err != nil {
				return err
			}
			return a.printChanges(changes)
		}),
	}
}

func newMCPAccept(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "accept NAME [TOOL...]",
		Short: "accept what an MCP server offers now",
		Long: `accept pins the present offer of an MCP server, or only the named tools of it, and prints
what it accepted, in the form of "pwos mcp diff". Tools that the server no longer offers
are removed.`,
		Example: `  pwos mcp accept fs
  pwos mcp accept fs read_file`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: a.Asking(func(ctx context.Context, c *client.Client, args []string) error {
			var only []string
			if len(args) > 1 {
				only = args[1:]
			}
			changes, err := a.acceptTools(ctx, c, args[0], only)
			if err != nil {
				return err
			}
			return a.printChanges(changes)
		}),
	}
}

// printChanges prints changes as a diff.
func (a *app) printChanges(changes []upstream.Change) error {
	if len(changes) == 0 {
		return nil
	}
	if a.WantsJSON() {
		return cli.PrintEach(a.App, changes)
	}
	var b strings.Builder
	for _, ch := range changes {
		fmt.Fprintf(&b, "%s %s", ch.Change, view.Escaped(ch.Tool))
		if ch.Why != "" {
			fmt.Fprintf(&b, ": %s", view.Escaped(ch.Why))
		}
		b.WriteByte('\n')
		was, now := lines(ch.Was), lines(ch.Now)
		for i := range now {
			if ch.Was != nil && was[i] != now[i] {
				fmt.Fprintf(&b, "  - %s\n", was[i])
			}
			if ch.Was == nil || ch.Was != nil && was[i] != now[i] {
				fmt.Fprintf(&b, "  + %s\n", now[i])
			}
		}
	}
	return a.Print(b.String())
}

// lines returns a tool's description, one member a line; nil for no tool.
func lines(t *upstream.Tool) []string {
	if t == nil {
		return nil
	}
	return []string{
		"description: " + view.Escaped(t.Description), "kind: " + t.Kind, "input: " + quote.JSON(string(t.Input)), "output: " + quote.JSON(string(t.Output)),
	}
}
