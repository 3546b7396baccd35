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
	"github.com/promptware-os/pwos/schema"
)

// mcpFile is what a .mcp.json has.
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
		Use:   "import FILE",
		Short: "add the MCP servers of a .mcp.json",
		Long: `import adds each server of a .mcp.json, as "pwos mcp add" does without further flags. The
file is read whole before anything is added: a server that it says something of which
cannot be kept is an error, and nothing is added. So are a variable of this shell (${…}),
and a header other than Authorization: a secret is the key of one, as in
"env": {"TOKEN": "vault/token"} and "headers": {"Authorization": "Bearer vault/token"}.

A server that does not start stays added, and "pwos mcp accept" takes its tools once it
does. The PIDs and states are printed, as "pwos mcp ls" does.`,
		Example: `  pwos mcp import .mcp.json`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read servers: %w", err)
			}
			servers, err := importOf(text)
			if err != nil {
				return usage(cmd, fmt.Errorf("%s: %w", args[0], err))
			}
			return a.withKernel(cmd.Context(), time.Duration(1+len(servers))*time.Minute, func(ctx context.Context, c *client.Client) error {
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

// importOf reads the servers of a .mcp.json, by name. Its errors are those of the file.
func importOf(text []byte) ([]*mcpServer, error) {
	if !schema.Valid(text) {
		return nil, errors.New("is not one strict JSON value")
	}
	in, wrong := schema.TypeOf[mcpFile]().Decode(text)
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
			return nil, fmt.Errorf("the header %s cannot be kept: Authorization can, as Bearer vault/KEY", header)
		}
		bearer = key
	}
	switch {
	case in.Type == "stdio" && in.Command == "", in.Type == "http" && in.URL == "", in.Command == "" && in.Args != nil, in.Headers != nil && in.URL == "":
		return nil, errors.New("has a command with its arguments, or a url with its headers")
	case in.URL != "" && in.Env != nil:
		return nil, errors.New("env goes with a command")
	}
	for _, text := range slices.Concat(command, []string{in.URL}, slices.Collect(maps.Values(in.Env))) {
		if strings.Contains(text, "${") {
			return nil, fmt.Errorf("%q has a variable: put its value there, or the key of a secret such as vault/token", text)
		}
	}
	s.setEnv(in.Env)
	return s, s.complete(command, bearer)
}
