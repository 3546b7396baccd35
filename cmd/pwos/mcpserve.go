package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/mcp"
	"github.com/promptware-os/pwos/door/mcp/upstream"
	"github.com/promptware-os/pwos/internal/version"
)

func newMCPBridge(a *app) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:    "bridge NAME [--url URL | -- COMMAND [ARGS...]]",
		Short:  "run as the agent of an MCP server",
		Hidden: true,
		Long: `The agent of an MCP server runs bridge: see "pwos mcp add". It provides the tools
of the server to the kernel.`,
		Example: `  pwos mcp bridge fs -- mcp-server-filesystem .`,
		Args:    cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (address == "") == (len(args) == 1) {
				return cli.Usage(cmd, errors.New("give the COMMAND of a server or its --url"))
			}
			return a.mcpBridge(cmd.Context(), args[0], address, args[1:])
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "address of the server")
	cmd.Flags().String("bearer", "", "key of the token that the kernel adds to requests")
	return cmd
}

func (a *app) mcpBridge(ctx context.Context, name, address string, command []string) (err error) {
	c, err := a.DialWith(ctx, cli.Dialing{Running: true, Events: true})
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, c)
	o := &upstream.Options{Name: name, Kernel: c, Note: a.Say, Version: version.Build()}
	if address == "" {
		o.Executable, o.Start = command[0], upstream.Program(command, a.Stderr)
	} else {
		endpoint, err := endpointOf(address)
		if err != nil {
			return err
		}
		o.Start = upstream.Remote(endpoint)
	}
	return upstream.Run(ctx, o)
}

// upstreamScheme is the scheme of a URL whose host is an upstream of the configuration.
const upstreamScheme = "upstream"

// endpointOf returns the address at which the agent reaches a server from inside its sandbox.
func endpointOf(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("--url: %w", err)
	}
	if at.Scheme != upstreamScheme {
		if endpoint := os.Getenv("PWOS_UPSTREAM"); endpoint != "" {
			return endpoint, nil
		}
		return "", errors.New("--url: this agent has no upstream: remove the server and add it again")
	}
	variable := "PWOS_UPSTREAM_" + strings.ToUpper(strings.ReplaceAll(at.Host, "-", "_"))
	base := os.Getenv(variable)
	if base == "" {
		return "", fmt.Errorf("--url: this agent has no upstream %s: grant it one, or remove the server and add it again", at.Host)
	}
	return strings.TrimSuffix(base, "/") + at.RequestURI(), nil
}

// mcpServeFlags are the flags of `pwos mcp serve`.
type mcpServeFlags struct {
	serving
	as, tokenFile, trustHost string
	allow, hosts, origins    []string
}

func newMCPServe(a *app) *cobra.Command {
	var f mcpServeFlags
	cmd := &cobra.Command{
		Use:   "serve --as NAME",
		Short: "serve a process as an MCP server",
		Long: `serve is an MCP server that acts as the process NAME. It spawns the process if there is none;
an existing one keeps its mail, its grants and its resources. Each syscall that it
may call is a tool (Memory.Set is Memory_Set), and so is each user-space syscall that it
was granted by its path. The error of a refused call tells how the operator can allow it.
The resources are below pwos:///memory/ and pwos:///audit/; documents that it has
ingested are prompts.

--allow is the grant of a new process, as in "pwos cap grant"; an existing process
keeps its grant. Without it a new process gets the default grant of "pwos run".

It speaks over stdin and stdout, and ends when stdin does. With --http it serves at
http://ADDR/mcp instead: only on this machine, unless --tls-cert and --tls-key are
given, and only to clients that send the bearer token in --token-file, which serve makes if
it does not exist (default: mcp.token in the runtime directory).

A call that needs approval waits. --trust-host NAME accepts the answer of the user of the
host with that name as an approval: use it only if a person answers the questions of that
host. Without it only "pwos approve" counts.

serve reconnects to a kernel that was restarted. It starts a kernel only at its own
start, and not at all with --no-spawn. In an agent, serve acts as that agent, whatever --as
says.`,
		Example: `  pwos mcp serve --as claude --allow 'Memory.*'
  pwos mcp serve --as web --http 127.0.0.1:7433`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			certificate, err := f.certificate()
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if f.address == "" {
				for _, name := range []string{"tls-cert", "token-file", "allow-host", "allow-origin"} {
					if cmd.Flags().Changed(name) {
						return cli.Usage(cmd, fmt.Errorf("--%s needs --http", name))
					}
				}
				return a.mcpServe(cmd.Context(), &f, func(ctx context.Context, b *mcp.Bridge) error {
					return b.ServeLines(ctx, a.Stdin, a.Stdout)
				})
			}
			for _, origin := range f.origins {
				if err := mcp.CheckOrigin(origin); err != nil {
					return cli.Usage(cmd, fmt.Errorf("--allow-origin: %w", err))
				}
			}
			listener, err := f.listen("--http")
			if err != nil {
				return cli.Usage(cmd, err)
			}
			defer func() { _ = listener.Close() }() // the server closes it
			return a.mcpServeHTTP(cmd.Context(), &f, listener, certificate)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.as, "as", "", "name of the process to act as")
	flags.StringSliceVar(&f.allow, "allow", nil, "what a new process may call, as in cap grant, separated by commas; may be repeated")
	flags.StringVar(&f.address, "http", "", "serve over HTTP at this address, such as 127.0.0.1:7433")
	f.flags(cmd)
	flags.StringVar(&f.tokenFile, "token-file", "", "file of the bearer token for requests; made if it does not exist")
	flags.StringVar(&f.trustHost, "trust-host", "", "name of the MCP host whose user may approve waiting calls")
	flags.StringSliceVar(&f.hosts, "allow-host", nil, "a name of this server, as in the Host header of requests; may be repeated")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "origin of web pages that may call, such as https://app.example; may be repeated")
	return cmd
}

// mcpServe calls serve with a bridge to the kernel.
func (a *app) mcpServe(ctx context.Context, f *mcpServeFlags, serve func(context.Context, *mcp.Bridge) error) error {
	redial := func(ctx context.Context) (*client.Client, error) { return a.DialRunning(ctx) }
	return serve(ctx, mcp.New(mcp.Options{
		Agent: door.Agent{Name: f.as, Allow: f.allow, Via: "mcp"}, Dial: a.Dial, Redial: redial, Patience: cmp.Or(a.Timeout, cli.UsualTimeout), Note: a.Say, TrustHost: f.trustHost, Helpers: helperLines(), Version: version.Build(),
	}))
}

func (a *app) mcpServeHTTP(ctx context.Context, f *mcpServeFlags, listener net.Listener, certificate *tls.Certificate) error {
	file := f.tokenFile
	if file == "" {
		options, err := a.Options()
		if err != nil {
			return err
		}
		dir := options.RuntimeDir
		if dir == "" {
			dir = client.RuntimeDir()
		}
		file = filepath.Join(dir, "mcp.token")
	}
	return a.mcpServe(ctx, f, func(ctx context.Context, b *mcp.Bridge) error {
		return b.ServeHTTP(ctx, &mcp.HTTP{
			Listener: listener, Certificate: certificate, Hosts: f.hosts, Origins: f.origins,
			Token: func() (string, error) {
				token, err := bearer(file)
				if err == nil {
					scheme := "http"
					if f.cert != "" {
						scheme = "https"
					}
					a.Say("serving at %s://%s/mcp; clients need the token in %s", scheme, listener.Addr(), file)
				}
				return token, err
			},
		})
	})
}
