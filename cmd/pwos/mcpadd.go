package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/mcp/upstream"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// mcpAddFlags are the flags of `pwos mcp add`.
type mcpAddFlags struct {
	url, bearer string
	pin         bool
	line        profile.Line
}

// mcpServer is an MCP server to be added.
type mcpServer struct {
	name    string
	command []string // empty: the server is reached by its URL
	url     string
	pin     bool
	program schema.Program // how its agent runs, without the command
	http    *schema.HTTPGrant
	allow   []string
}

func newMCPAdd(a *app) *cobra.Command {
	var f mcpAddFlags
	cmd := &cobra.Command{
		Use:   "add NAME [flags] [--url URL | -- COMMAND [ARGS...]]",
		Short: "offer the tools of an MCP server as syscalls",
		Long: `add makes the kernel run an MCP server as the agent mcp.NAME, confined as with "pwos run",
and restarted when it ends. Each of its tools becomes the user-space syscall
mcp/NAME/TOOL, for agents that are granted Call:mcp/NAME/TOOL or Call:mcp/NAME/*. With --url
the server runs elsewhere, and the agent reaches only that address, through the
kernel, which adds the credential: the token that --bearer names, or the login of
"pwos mcp login NAME". upstream://UPSTREAM/PATH is a server behind an upstream of the
configuration.

add accepts and prints the tools that the server offers now. Their descriptions and
schemas are pinned: a tool whose description or schema changes later is suspended,
and a new tool is not offered, until "pwos mcp accept NAME"; "pwos mcp diff NAME" shows
the difference. --pin also pins the file of COMMAND.

COMMAND works in its own directory, which is also its HOME, unless --dir names another.
It does not see this shell's variables: name those that it needs with --env, as NAME=value,
or as NAME=vault/KEY for a secret, which the kernel opens when it starts the server. The
server's messages are in "pwos logs".`,
		Example: `  pwos mcp add fs --dir ~/project -- mcp-server-filesystem .
  pwos mcp add github --env GITHUB_TOKEN=vault/github --host api.github.com -- github-mcp-server stdio
  pwos mcp add docs --url https://mcp.example.com/mcp --bearer vault/docs`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.server(args[0], args[1:])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.WithKernel(cmd.Context(), time.Minute, func(ctx context.Context, c *client.Client) error {
				changes, err := a.addServer(ctx, c, s)
				if err != nil {
					return err
				}
				return a.printChanges(changes)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "address of a server that speaks streamable HTTP")
	flags.StringVar(&f.bearer, "bearer", "", "key below vault/ of the bearer token for requests to --url")
	flags.BoolVar(&f.pin, "pin", false, "pin the executable too")
	addSettings(flags, &f.line, "env", "limit", "dir", "host", "http-plain", "http-open", "sandbox", "net", "read", "write", "hide", "allow-gaps")
	flags.Lookup("dir").Usage = "working directory, where it may write (default: its own directory)"
	return cmd
}

// server returns the server that the command line describes. Its errors are usage errors.
func (f *mcpAddFlags) server(name string, command []string) (*mcpServer, error) {
	s := &mcpServer{name: name, url: f.url, pin: f.pin}
	p := f.line.Profile()
	here, err := hereIn(p)
	if err != nil {
		return nil, err
	}
	if s.program, err = p.Program(here); err != nil {
		return nil, err
	}
	if grant := p.Capability(); grant != nil {
		s.http = grant.HTTP
	}
	if p.Dir != "" {
		state, err := cli.StateDir()
		if err != nil {
			return nil, err
		}
		dir, err := workDir(here.Dir, state, client.RuntimeDir())
		if err != nil {
			return nil, err
		}
		s.program.Cwd = &dir
	}
	return s, s.complete(command, f.bearer)
}

// complete sets the command or the address of a server. Its errors are usage errors.
func (s *mcpServer) complete(command []string, bearer string) (err error) {
	switch {
	case !schema.ValidMCPName(s.name):
		return fmt.Errorf("%q is not a server NAME: use a to z, 0 to 9 and -, at most 64 characters", s.name)
	case (s.url == "") == (len(command) == 0):
		return errors.New("give the COMMAND of a server or its --url")
	case s.url == "":
		if bearer != "" {
			return errors.New("--bearer needs --url")
		}
		s.command, err = commandOf(command)
		return err
	case s.pin:
		return errors.New("--pin is for a COMMAND: a server elsewhere has no file here")
	}
	at, err := url.Parse(s.url)
	if err != nil || at.Host == "" || at.User != nil || at.Fragment != "" {
		return fmt.Errorf("--url %q is not an address such as https://mcp.example.com/mcp", s.url)
	}
	switch at.Scheme {
	case upstreamScheme:
		s.allow = append(s.allow, "Upstream:"+at.Host)
		if bearer != "" {
			return errors.New("--bearer is not for an upstream: the configuration holds the credential of an upstream")
		}
		return nil
	case "https", "http":
	default:
		return fmt.Errorf("--url %q: the scheme must be https, http or upstream", s.url)
	}
	if bearer != "" && !strings.HasPrefix(bearer, "vault/") {
		return fmt.Errorf("--bearer %q is not the key of a secret, such as vault/docs", bearer)
	}
	s.program.Upstream = &schema.ProgramUpstream{URL: s.url, From: cmp.Or(bearer, loginKey(s.name))}
	if _, err := s.program.Upstream.Target(); err != nil {
		return fmt.Errorf("--url %q %w", s.url, err)
	}
	s.allow = append(s.allow, "Upstream:"+schema.MCPAgent("mcp/"+s.name))
	return nil
}

// loginKey returns the memory key of the login at a server.
func loginKey(name string) string { return "vault/mcp/" + name }

// addServer registers a server's entry, starts its agent, and accepts its current offer.
func (a *app) addServer(ctx context.Context, c *client.Client, s *mcpServer) ([]upstream.Change, error) {
	e, err := findEntry(ctx, c, s.name)
	switch {
	case err == nil && e != nil:
		return nil, fault.SyscallTaken.New("there is an MCP server %s already: %s takes it away", s.name, upstream.Command("rm", s.name))
	case err != nil:
		return nil, err
	}
	executable := ""
	if s.pin {
		if executable, err = upstream.Digest(s.command[0]); err != nil {
			return nil, err
		}
	}
	entry := "mcp/" + s.name
	if _, err := client.Call(ctx, c, schema.SyscallRegister, upstream.Entry(entry, executable)); err != nil {
		return nil, err
	}
	in, err := s.spawn(c.Places().Dir)
	if err == nil {
		_, err = client.Call(ctx, c, schema.SyscallSpawn, in)
	}
	if err != nil {
		_, undone := client.Call(ctx, c, schema.SyscallUnregister, &schema.UnregisterInput{Name: entry})
		return nil, errors.Join(err, undone)
	}
	changes, err := a.acceptTools(ctx, c, s.name, nil)
	if err != nil {
		a.Say("the MCP server %s is added, and has no tools yet: %s takes them once it runs", s.name, upstream.Command("accept", s.name))
	}
	return changes, err
}

// spawn returns the data of the Syscall.Spawn call for a server's agent.
func (s *mcpServer) spawn(runtimeDir string) (*schema.SpawnInput, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	entry, always, channel, intent := "mcp/"+s.name, "always", "fd3", "MCP server "+s.name
	in := &schema.SpawnInput{
		ChildAgentID: schema.MCPAgent(entry), Intent: &intent, Program: s.program,
		// Besides upstreams, the agent may call only its own entry, and none of the tools below that.
		Capabilities: &schema.SpawnCapability{AllowedSyscalls: append([]string{"Call:" + entry}, s.allow...), HTTP: s.http},
	}
	in.Restart, in.Channel = &always, &channel
	in.Env = maps.Clone(s.program.Env)
	if in.Env == nil {
		in.Env = make(map[string]string)
	}
	in.Env["PWOS_RUNTIME_DIR"] = runtimeDir
	in.Command = []string{self, "mcp", "bridge", s.name}
	if s.url != "" {
		in.Command = append(in.Command, "--url", s.url)
		if u := s.program.Upstream; u != nil && u.From != loginKey(s.name) {
			in.Command = append(in.Command, "--bearer", u.From) // shows the key to a user who reads the command
		}
	} else {
		in.Command = append(append(in.Command, "--"), s.command...)
	}
	return in, nil
}
