package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/mcp"
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
	c, err := a.dialWith(ctx, dialing{running: true, events: true})
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

// upstreamScheme is the scheme of a URL whose host is an upstream of the configuration.
const upstreamScheme = "upstream"

// endpointOf is the address of a server from inside the sandbox.
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

// mcpServeFlags are the flags of `pwos mcp serve`.
type mcpServeFlags struct {
	as, http, cert, key, tokenFile string
	trustHost                      string
	allow, hosts, origins          []string
}

func newMCPServe(a *app) *cobra.Command {
	var f mcpServeFlags
	cmd := &cobra.Command{
		Use:   "serve --as NAME",
		Short: "serve a process as an MCP server",
		Long: `serve is an MCP server that is the process NAME: made where there is none, found again by
its name where there is, with its mail, its grants and what it has. Each syscall that it
may call is a tool, Memory.Set as Memory_Set, and so is each user-space syscall that it
was granted by its path. A call that is refused says how the operator can allow it.
Below pwos:///memory/ and pwos:///audit/ are resources, the documents that it has
ingested are prompts.

--allow is what a new process is granted, as in "pwos cap grant"; one that is there
keeps what it has. Without it a new process has the default grant of "pwos run".

It speaks over stdin and stdout, and ends when stdin does. With --http it serves at
http://ADDR/mcp instead: to this machine alone, unless --tls-cert and --tls-key are
given, and only to who sends the bearer token in --token-file, which is made where it
is not there (default: mcp.token in the runtime directory).

A call that a rule has somebody asked about waits. --trust-host NAME takes the host of that
name at its word where its user accepts such a call there: only do so where a person
answers what that host asks. Without it "pwos approve" alone counts.

A kernel that ends is found again once it is back. serve starts one only at its own
start, and not at all with --no-spawn. In an agent serve is that agent, whatever --as
says.`,
		Example: `  pwos mcp serve --as claude --allow 'Memory.*'
  pwos mcp serve --as web --http 127.0.0.1:7433`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (f.cert == "") != (f.key == "") {
				return usage(cmd, errors.New("--tls-cert and --tls-key go together"))
			}
			if f.http == "" {
				for _, name := range []string{"tls-cert", "token-file", "allow-host", "allow-origin"} {
					if cmd.Flags().Changed(name) {
						return usage(cmd, fmt.Errorf("--%s goes with --http", name))
					}
				}
				return a.mcpServe(cmd.Context(), &f, func(ctx context.Context, b *mcp.Bridge) error {
					return b.ServeLines(ctx, a.stdin, a.stdout)
				})
			}
			for _, origin := range f.origins {
				if err := mcp.CheckOrigin(origin); err != nil {
					return usage(cmd, fmt.Errorf("--allow-origin: %w", err))
				}
			}
			certificate, err := f.certificate()
			if err != nil {
				return usage(cmd, err)
			}
			listener, err := f.listen()
			if err != nil {
				return usage(cmd, err)
			}
			defer func() { _ = listener.Close() }() // the server closes it
			return a.mcpServeHTTP(cmd.Context(), &f, listener, certificate)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.as, "as", "", "name of the process to be")
	flags.StringSliceVar(&f.allow, "allow", nil, "what a new process may call, as in cap grant, separated by commas; may be given again")
	flags.StringVar(&f.http, "http", "", "serve over HTTP at this address, such as 127.0.0.1:7433")
	flags.StringVar(&f.cert, "tls-cert", "", "file of the server's certificate: serve over HTTPS")
	flags.StringVar(&f.key, "tls-key", "", "file of the certificate's key")
	flags.StringVar(&f.tokenFile, "token-file", "", "file of the token that each request has to bear; made where it is not there")
	flags.StringVar(&f.trustHost, "trust-host", "", "name of the MCP client whose user's accept approves a call that waits")
	flags.StringSliceVar(&f.hosts, "allow-host", nil, "a name of this server, as requests have it in Host; may be given again")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "origin of pages that may call, such as https://app.example; may be given again")
	return cmd
}

// certificate is the server's certificate, nil if there is none.
func (f *mcpServeFlags) certificate() (*tls.Certificate, error) {
	if f.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return &pair, nil
}

// listen listens on the address, which must be loopback unless there is TLS.
func (f *mcpServeFlags) listen() (net.Listener, error) {
	listener, err := net.Listen("tcp", f.http)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	if addr := listener.Addr().(*net.TCPAddr); f.cert == "" && !addr.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("--http %s would be open to other machines without encryption: name a loopback address such as 127.0.0.1:%d, or give --tls-cert and --tls-key", f.http, addr.Port), listener.Close())
	}
	return listener, nil
}

// mcpServe runs serve with a connected bridge.
func (a *app) mcpServe(ctx context.Context, f *mcpServeFlags, serve func(context.Context, *mcp.Bridge) error) error {
	redial := func(ctx context.Context) (*client.Client, error) { return a.dialRunning(ctx) }
	return serve(ctx, mcp.New(mcp.Options{
		Agent: door.Agent{Name: f.as, Allow: f.allow, Via: "mcp"}, Dial: a.dial, Redial: redial, Patience: cmp.Or(a.timeout, usualTimeout), Note: a.say, TrustHost: f.trustHost, Version: version(),
	}))
}

func (a *app) mcpServeHTTP(ctx context.Context, f *mcpServeFlags, listener net.Listener, certificate *tls.Certificate) error {
	file := f.tokenFile
	if file == "" {
		options, err := a.options()
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
					a.say("serving at %s://%s/mcp, to who bears the token in %s", scheme, listener.Addr(), file)
				}
				return token, err
			},
		})
	})
}

// shortestToken is the least length of a bearer token in bytes.
const shortestToken = 16

// bearer returns the token in a file that only its owner may read; it creates both if there is no file.
func bearer(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		token := rand.Text()
		_, err = io.WriteString(f, token+"\n")
		return token, errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make token: %w", err)
	}
	if f, err = os.Open(file); err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("read token: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("token file %s is open to others: %q mends that", file, "chmod 600 "+file)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < shortestToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("token file %s: a token is one word of at least %d characters; remove the file to have one made", file, shortestToken)
	}
	return token, nil
}
