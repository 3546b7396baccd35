package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// mcpLoginFlags are the flags of `pwos mcp login`.
type mcpLoginFlags struct {
	clientID, clientSecret string
	scopes                 []string
}

// loginTime is the time limit of a login, which includes the user's part in the browser.
const loginTime = 5 * time.Minute

func newMCPLogin(a *app) *cobra.Command {
	var f mcpLoginFlags
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "log in at a remote MCP server",
		Long: `login logs in at an MCP server that was added with --url, if the server requires it (OAuth
2.1). It prints the address of the login, opens it in a browser if this is a terminal,
and waits up to 5 minutes for the browser to return to 127.0.0.1. BROWSER names
another browser.

The login is sealed with the kernel's key, or else its host key, and stored as vault/mcp/NAME. The kernel adds
the token to requests of the server's agent, and renews it; the agent never sees it. Tools
that were not accepted yet are accepted then, and printed.

pwos registers itself with the authorization server. If that allows no registration, give
the --client-id that was registered there for pwos, with the redirect
http://127.0.0.1/callback on any port.`,
		Example: `  pwos mcp login docs
  pwos mcp login docs --scope read --scope write
  pwos mcp login docs --client-id 4f2a --client-secret vault/docs-client`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.clientSecret != "" && (f.clientID == "" || !strings.HasPrefix(f.clientSecret, "vault/")) {
				return cli.Usage(cmd, errors.New("--client-secret is the key of a secret, such as vault/docs-client, and needs --client-id"))
			}
			return a.WithKernel(cmd.Context(), loginTime, func(ctx context.Context, c *client.Client) error {
				return a.logIn(ctx, c, args[0], &f)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.scopes, "scope", nil, "scope to request (default: what the server names); may be repeated")
	flags.StringVar(&f.clientID, "client-id", "", "client id that is registered with the authorization server")
	flags.StringVar(&f.clientSecret, "client-secret", "", "key below vault/ of that client's secret")
	return cmd
}

// logIn logs in at the server with that name, and stores the login, sealed.
func (a *app) logIn(ctx context.Context, c *client.Client, name string, f *mcpLoginFlags) (err error) {
	e, err := entryNamed(ctx, c, name)
	if err != nil {
		return err
	}
	address, err := e.address()
	if err != nil {
		return err
	}
	o := &oauth.Options{ClientID: f.clientID, Scopes: f.scopes, Show: a.browse}
	if f.clientSecret != "" {
		if o.ClientSecret, err = openSecret(ctx, c, f.clientSecret); err != nil {
			return err
		}
	}
	fetcher, err := offline.Fetcher(nil, os.Getenv)
	if err != nil {
		return err
	}
	web := oauth.NewClient(address, fetcher)
	defer web.Close()
	login, err := web.LogIn(ctx, o)
	if err != nil {
		return fault.UpstreamLogin.New("the login at %s failed: %s", name, fault.Clip(view.Escaped(err.Error()))).Wrap(err)
	}
	text, err := login.String()
	if err != nil {
		return err
	}
	err = keepSealed(ctx, c, loginKey(name), text, true)
	if errors.Is(err, fault.CryptoNoSealer) { // the user has no key
		err = keepSealed(ctx, c, loginKey(name), text, false)
	}
	if err != nil {
		return err
	}
	a.Say("logged in at %s", name)
	if len(e.tools) > 0 {
		_, err = e.offer(ctx, c) // makes the server start again
		return err
	}
	changes, err := a.acceptTools(ctx, c, name, nil)
	if err != nil {
		return err
	}
	return a.printChanges(changes)
}

// address returns the URL of a remote server.
func (e *addedServer) address() (*url.URL, error) {
	const flag = 4 // index of --url in an agent's command; see serverOf
	if e.agent == nil || len(e.agent.Command) <= flag+1 || e.agent.Command[flag] != "--url" {
		return nil, cli.Misuse("pwos mcp login", fmt.Errorf("the MCP server %s was not added with %s, or its agent has ended: there is nowhere to log in", e.name, quote.Command("pwos", "mcp", "add", e.name, "--url")))
	}
	at, err := url.Parse(e.agent.Command[flag+1])
	switch {
	case err != nil || at.Scheme == upstreamScheme:
		return nil, cli.Misuse("pwos mcp login", fmt.Errorf("the MCP server %s is behind an upstream: the configuration holds its credential", e.name))
	case len(e.agent.Command) > flag+2:
		return nil, cli.Misuse("pwos mcp login", fmt.Errorf("the MCP server %s has a bearer token, %s: seal another one, and store it there", e.name, e.agent.Command[len(e.agent.Command)-1]))
	}
	return at, nil
}

// openSecret returns the plaintext of a sealed value in memory.
func openSecret(ctx context.Context, c *client.Client, key string) (string, error) {
	stored, err := client.Call(ctx, c, schema.MemoryGet, &schema.MemoryGetInput{Key: key})
	if err != nil {
		return "", err
	}
	sealed, wrong := schema.TypeOf[string]().Decode(*stored)
	if wrong != nil {
		return "", wrong
	}
	opened, err := client.Call(ctx, c, schema.CryptoOpen, &schema.OpenInput{Value: *sealed.(*string)})
	if err != nil {
		return "", err
	}
	return strings.TrimRight(opened.Plaintext, "\r\n"), nil
}

// browse prints an address, and opens it in a browser if stdin and stdout are a terminal.
func (a *app) browse(address string) error {
	fmt.Fprintf(a.Stderr, "pwos: log in here:\n\n%s\n\n", view.Escaped(address))
	if !a.StdinTerminal() || !a.StdoutTerminal() {
		return nil
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	browser := exec.Command(cmp.Or(os.Getenv("BROWSER"), opener), address)
	browser.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that it survives this program and this terminal
	if err := browser.Start(); err != nil {
		a.Say("no browser was opened: %v", err)
		return nil
	}
	return browser.Process.Release()
}
