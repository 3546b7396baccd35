package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// serversOf returns the MCP servers that the user has for a host, sorted by name, and why each of the others cannot be taken.
func serversOf(host *preset.Host) (servers []*mcpServer, left []string, err error) {
	if host.MCP.File == "" {
		return nil, nil, fmt.Errorf("%s has no MCP servers", host.Name)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, nil, fmt.Errorf("find your home: %w", err)
	}
	path := filepath.Join(home, host.MCP.File)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	var all map[string]schema.Value
	if err == nil {
		all, err = membersAt(path, text, host.MCP.Member)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the MCP servers of %s: %w", host.Name, err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		server, err := serverOfHost(name, all[name])
		switch {
		case err != nil:
			left = append(left, fmt.Sprintf("%s: %v", view.Escaped(name), err))
		case server != nil:
			servers = append(servers, server)
		}
	}
	return servers, left, nil
}

// membersAt returns the members of a member of a file of settings.
func membersAt(path string, text []byte, member string) (map[string]schema.Value, error) {
	if filepath.Ext(path) != ".toml" {
		value, err := hostfile.Member(text, member)
		members, _ := view.Members(bytes.TrimSpace(value)) // else there are none
		return members, err
	}
	table, err := hostfile.Value(text, member)
	if err != nil || table == nil {
		return nil, err
	}
	value, err := schema.Marshal(table)
	members, _ := view.Members(value)
	return members, err
}

// serverOfHost returns an MCP server as a host has it; nil if it is switched off there, or is pwos. The hosts have different members for the
// same; those that are about their own behaviour, such as time limits, have no meaning here.
func serverOfHost(name string, value schema.Value) (*mcpServer, error) {
	members, ok := view.Members(value)
	if !ok {
		return nil, errors.New("it is no object")
	}
	off, _ := view.As[bool](members["disabled"])
	if on, given := view.As[bool](members["enabled"]); off || given && !on || name == "pwos" {
		return nil, nil
	}
	text := func(names ...string) (found string) {
		for _, name := range names {
			one, _ := view.As[string](members[name])
			found = cmp.Or(found, one)
		}
		return found
	}
	in := mcpFileServer{Command: text("command"), URL: text("httpUrl", "serverUrl", "url")}
	in.Args, _ = view.As[[]string](members["args"])
	if words, list := view.As[[]string](members["command"]); list && len(words) > 0 {
		in.Command, in.Args = words[0], words[1:]
	}
	for _, member := range []string{"env", "environment"} {
		if env, given := view.As[map[string]string](members[member]); given && len(env) > 0 {
			in.Env = env
		}
	}
	for _, member := range []string{"headers", "http_headers"} {
		if headers, given := view.As[map[string]string](members[member]); given && len(headers) > 0 {
			in.Headers = headers
		}
	}
	switch {
	case text("cwd") != "":
		return nil, errors.New(`it works in a directory of its own: add it with "pwos mcp add", which has --dir`)
	case text("bearer_token_env_var") != "" || members["env_http_headers"] != nil || members["env_vars"] != nil:
		return nil, errors.New(`it takes a secret from the environment: store it below vault/, and add the server with "pwos mcp add"`)
	}
	if strings.Contains(in.URL, "?") || strings.Contains(in.URL, "@") || slices.ContainsFunc(in.Args, namesSecret) {
		return nil, errors.New(`its address or its arguments may have a secret, and stand in the record: store that below vault/, and add the server with "pwos mcp add --env" or --bearer`)
	}
	for header, value := range in.Headers {
		if !strings.HasPrefix(value, "Bearer vault/") {
			return nil, fmt.Errorf("its header %s may be a secret: store it below vault/, and add the server with \"pwos mcp add --bearer\"", view.Escaped(header))
		}
	}
	return serverIn(validMCPName(name), in)
}

// validMCPName returns the name of a server as one of the kernel.
func validMCPName(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
}

// offerServers says, once at the first start in a project, that the user's MCP servers are not inside.
func (a *app) offerServers(host *preset.Host) {
	servers, left, err := serversOf(host)
	if err != nil || len(servers) == 0 { // a file that cannot be read is the host's to tell
		return
	}
	names := make([]string, 0, len(servers))
	for _, s := range servers {
		names = append(names, s.name)
	}
	more := ""
	if len(left) > 0 {
		more = fmt.Sprintf(", without %d that it cannot take", len(left))
	}
	a.Say("your MCP servers of %s stay outside (%s): %s has the kernel run them, confined%s", host.Name, named(names), quote.Command("pwos", "mcp", "import", host.Name), more)
}

// namesSecret reports whether an argument is an option whose value may be a secret, such as --api-key=x.
func namesSecret(arg string) bool {
	name, _, _ := strings.Cut(strings.ToLower(arg), "=")
	return strings.HasPrefix(name, "-") && slices.ContainsFunc([]string{"token", "secret", "key", "password", "credential", "auth"}, func(part string) bool { return strings.Contains(name, part) })
}
