package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
)

// mcpFile is the content of a .mcp.json.
type mcpFile struct {
	Servers map[string]mcpFileServer `json:"mcpServers"`
}

type mcpFileServer struct {
	Type    string            `json:"type,omitzero" enum:"stdio http"`
	Command string            `json:"command,omitzero"`
	Args    []string          `json:"args,omitzero"`
	Env     map[string]string `json:"env,omitzero"`
	URL     string            `json:"url,omitzero"`
	Headers map[string]string `json:"headers,omitzero"`
}

func newMCPImport(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|NAME",
		Short: "add the MCP servers of a .mcp.json, or those that you have for an agent host",
		Long: `import adds each server of a .mcp.json, like "pwos mcp add" without further flags. It
reads the whole file first: if a setting of a server
cannot be kept, it fails, and adds nothing. It also refuses variables of this shell (${…})
and headers other than Authorization. Name secrets by their key, as in
"env": {"TOKEN": "vault/token"} and "headers": {"Authorization": "Bearer vault/token"}.

With the name of an agent host, such as claude, it adds those that you have for it in your home,
and says which cannot be taken, and why. Agents use the tools of a server NAME if they are
granted Call:mcp/NAME/*.

A server that does not start stays added; "pwos mcp accept" accepts its tools once it
does. The PIDs and states are printed, as "pwos mcp ls" does.`,
		Example: `  pwos mcp import .mcp.json
  pwos mcp import claude`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			servers, err := a.toImport(cmd, args[0])
			if err != nil || len(servers) == 0 {
				return err
			}
			return a.WithKernel(cmd.Context(), time.Duration(1+len(servers))*time.Minute, func(ctx context.Context, c *client.Client) error {
				var failed error
				for _, s := range servers {
					if _, err := a.addServer(ctx, c, s); err != nil {
						failed = errors.Join(failed, fmt.Errorf("add %s: %w", s.name, err))
					}
				}
				return errors.Join(failed, a.listServers(ctx, c))
			})
		},
	}
}

// toImport returns the servers of a file, or of a host.
func (a *app) toImport(cmd *cobra.Command, from string) ([]*mcpServer, error) {
	if host := preset.Named(from); host != nil {
		servers, left, err := serversOf(host)
		for _, why := range left {
			a.Say("left out: %s", why)
		}
		if err == nil && len(servers) == 0 {
			a.Say("there is no MCP server of %s to take", from)
		}
		return servers, err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return nil, fmt.Errorf("read servers: %w", err)
	}
	servers, err := importOf(text)
	if err != nil {
		return nil, cli.Usage(cmd, fmt.Errorf("%s: %w", from, err))
	}
	return servers, nil
}

// importOf returns the servers of a .mcp.json, sorted by name. Its errors are about the file.
func importOf(text []byte) ([]*mcpServer, error) {
	in, wrong := schema.TypeOf[mcpFile]().DecodeUntrusted(text)
	if wrong != nil {
		return nil, wrong
	}
	file := in.(*mcpFile)
	var servers []*mcpServer
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s, err := serverIn(name, file.Servers[name])
		if err != nil {
			return nil, fmt.Errorf("mcpServers.%s: %w", name, err)
		}
		servers = append(servers, s)
	}
	return servers, nil
}

func serverIn(name string, in mcpFileServer) (*mcpServer, error) {
	s := &mcpServer{name: name, url: in.URL}
	command := in.Args
	if in.Command != "" {
		command = append([]string{in.Command}, in.Args...)
	}
	bearer := ""
	for header, value := range in.Headers {
		key, ok := strings.CutPrefix(value, "Bearer ")
		if !strings.EqualFold(header, "Authorization") || !ok {
			return nil, fmt.Errorf("the header %s is not supported: only Authorization is, as Bearer vault/KEY", header)
		}
		bearer = key
	}
	switch {
	case in.Type == "stdio" && in.Command == "", in.Type == "http" && in.URL == "", in.Command == "" && in.Args != nil, in.Headers != nil && in.URL == "":
		return nil, errors.New("must have either a command with its arguments, or a url with its headers")
	case in.URL != "" && in.Env != nil:
		return nil, errors.New("env needs a command")
	}
	for _, text := range slices.Concat(command, []string{in.URL}, slices.Collect(maps.Values(in.Env))) {
		if strings.Contains(text, "${") {
			return nil, fmt.Errorf("%q has a variable: replace it by its value, or by the key of a secret such as vault/token", text)
		}
	}
	for name, value := range in.Env {
		s.program.SetVariable(name, value)
	}
	return s, s.complete(command, bearer)
}
