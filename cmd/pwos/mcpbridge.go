package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door/mcp/upstream"
)

func newMCPBridge(a *app) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:    "bridge NAME [--url URL | -- COMMAND [ARGS...]]",
		Short:  "be the agent of an MCP server",
		Hidden: true,
		Long: `bridge is what the agent of an MCP server runs: see "pwos mcp add". It provides the tools
of the server to the kernel, as the process that it is.`,
		Example: `  pwos mcp bridge fs -- mcp-server-filesystem .`,
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (address == "") == (len(args) == 1) {
				return usage(cmd, errors.New("give the COMMAND of a server or its --url"))
			}
			return a.mcpBridge(cmd.Context(), args[0], address, args[1:])
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "address of the server")
	cmd.Flags().String("bearer", "", "key of the token that the kernel adds")
	return cmd
}

func (a *app) mcpBridge(ctx context.Context, name, address string, command []string) (err error) {
	options, err := a.options()
	if err != nil {
		return err
	}
	options.Events = true // its lines are longer
	c, err := a.remember(client.Dial(ctx, options))
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	o := &upstream.Options{Name: name, Kernel: c, Note: a.say, Version: version()}
	if address == "" {
		o.Executable, o.Start = command[0], upstream.Program(command, a.stderr)
	} else {
		endpoint, err := endpointOf(address)
		if err != nil {
			return err
		}
		o.Start = upstream.Remote(endpoint)
	}
	return upstream.Run(ctx, o)
}

// upstreamScheme is that of a URL whose host is the name of an upstream of the configuration.
const upstreamScheme = "upstream"

// endpointOf is where a server is reached from inside.
func endpointOf(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("--url: %w", err)
	}
	if at.Scheme != upstreamScheme {
		if endpoint := os.Getenv("PWOS_UPSTREAM"); endpoint != "" {
			return endpoint, nil
		}
		return "", errors.New("--url: this agent has no upstream of its own: add the server again")
	}
	variable := "PWOS_UPSTREAM_" + strings.ToUpper(strings.ReplaceAll(at.Host, "-", "_"))
	base := os.Getenv(variable)
	if base == "" {
		return "", fmt.Errorf("--url: this agent has no upstream %s", at.Host)
	}
	return strings.TrimSuffix(base, "/") + at.RequestURI(), nil
}
