package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/effect/login"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// longestCredential bounds a login, in bytes: the journal has it sealed in a line.
const longestCredential = 8000

func newLogin(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login [NAME] [ARGS...]",
		Short: "give the kernel a key of a model or a host's login, or list those that it holds",
		Long: `login gives the kernel a key or token of a model's vendor: anthropic, openai or gemini,
the key of its API; claude, a token of a subscription, which "claude setup-token" shows. It
is typed at a terminal, where it is not shown, or is the first line of stdin.

The kernel seals it with its host key, as vault/login/NAME, and adds it to the requests of
the hosts that use it, from their next start. They have a placeholder. What they use is
counted, for budgets of tokens and dollars.

No login is needed for a key in the environment, such as ANTHROPIC_API_KEY: "pwos HOST" has
the kernel add it for that run, and keeps it out of the host. It comes before what the
kernel holds.

The login of Codex with ChatGPT, whose tokens rotate, is made by the host: login codex runs
"codex login" with ARGS, in a home that only the kernel has. The host renews it there. It is
never that of your own sessions.

Without NAME, login lists the logins, where each comes from, and which hosts use it. Other
hosts' own logins stay in their homes, and are not counted.`,
		Example: `  pwos login
  pwos login claude
  pwos login codex --device-auth
  pwos login anthropic < key.txt`,
		Args:              cli.Arguments(cobra.ArbitraryArgs),
		ValidArgsFunction: completeLogin,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.WithKernel(cmd.Context(), cli.UsualTimeout, a.listLogins)
			}
			login, err := loginNamed(args[0])
			switch {
			case err != nil:
				return cli.Usage(cmd, err)
			case login.Rotates:
				return a.hostLogin(cmd.Context(), login, args[1:])
			case len(args) > 1:
				return cli.Usage(cmd, fmt.Errorf("the login %s takes no arguments", login.Name))
			}
			return a.giveLogin(cmd.Context(), login)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows a name is the host's
	return cmd
}

// loginNamed returns the login of a name. The error about a host that has no login of its name says which keys it uses.
func loginNamed(name string) (*preset.Login, error) {
	if login := preset.LoginNamed(name); login != nil {
		return login, nil
	}
	var names []string
	for _, l := range preset.Logins() {
		names = append(names, l.Name)
	}
	known := "there are " + strings.Join(names, ", ")
	host := preset.Named(name)
	if host == nil {
		return nil, fmt.Errorf("no login is named %q: %s", name, known)
	}
	var uses []string
	for _, u := range host.Upstreams {
		if preset.LoginNamed(u.Name) != nil {
			uses = append(uses, quote.Command("pwos", "login", u.Name))
		}
	}
	return nil, fmt.Errorf("the kernel cannot keep the own login of %s: it stays in the host's home (log in inside, with %s), where what it uses is not counted; the kernel takes a key, with %s",
		name, quote.Command("pwos", name), strings.Join(uses, " or "))
}

func completeLogin(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	for _, l := range preset.Logins() {
		if len(args) == 0 {
			names = append(names, l.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// heldLogins returns the names of the logins that the kernel holds.
func heldLogins(ctx context.Context, c *client.Client) ([]string, error) {
	prefix := schema.LoginKey("")
	out, err := client.Call(ctx, c, schema.MemoryList, &schema.MemoryListInput{Prefix: &prefix})
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(out.Keys))
	for _, key := range out.Keys {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(key, "/"), prefix))
	}
	state, err := cli.StateDir()
	if err != nil {
		return nil, err
	}
	for _, home := range login.Homes(state) {
		if home.Held() {
			names = append(names, home.Name)
		}
	}
	return names, nil
}

// loginOf returns where the login comes from that the kernel would use for a host; "" if there is none. held are those that it holds. One
// of the environment comes first.
func loginOf(host *preset.Host, held []string) (from string) {
	for _, u := range host.Upstreams {
		l := preset.LoginNamed(u.Name)
		switch {
		case l == nil:
		case credentialOf(l) != "":
			return "$" + l.Variable
		case from == "" && slices.Contains(held, l.Name):
			from = "kernel: " + l.Name
		}
	}
	return from
}

// shownLogin is a login as it is listed.
type shownLogin struct {
	Login string   `json:"login"`
	From  string   `json:"from"` // the kernel, or the name of a variable; "": there is none
	Hosts []string `json:"hosts"`
}

func (a *app) listLogins(ctx context.Context, c *client.Client) error {
	held, err := heldLogins(ctx, c)
	if err != nil {
		return err
	}
	list := a.Listing("login", "from", "used by")
	for _, l := range preset.Logins() {
		row := shownLogin{Login: l.Name, Hosts: l.Users()}
		from := "not there: " + quote.Line("pwos", "login", l.Name)
		switch {
		case credentialOf(&l) != "":
			row.From, from = l.Variable, "$"+l.Variable+", for each run"
		case slices.Contains(held, l.Name):
			row.From, from = "kernel", "the kernel, sealed"
			if l.Rotates {
				from = "the kernel, in a home of its own"
			}
		}
		text, err := schema.Marshal(&row)
		if err != nil {
			return err
		}
		if err := list.Add(text, l.Name, from, strings.Join(row.Hosts, ", ")); err != nil {
			return err
		}
	}
	return list.End()
}

// giveLogin has the user show a credential, and the kernel keep it.
func (a *app) giveLogin(ctx context.Context, login *preset.Login) error {
	var secret string
	if a.StdinTerminal() {
		if err := a.showLogin(ctx, login); err != nil {
			return err
		}
		typed, err := cli.AskPassphrase(ctx, "pwos: the key or token, which is not shown: ")
		if err != nil {
			return err
		}
		secret = string(typed)
	} else {
		text, err := a.ReadStdin(ctx)
		if err != nil {
			return err
		}
		secret, _, _ = strings.Cut(string(text), "\n")
	}
	secret = strings.TrimSpace(secret)
	if err := credential(secret); err != nil {
		return fault.UsageInvalid.New("%s", err.Error()).With("verb", "pwos login")
	}
	if err := a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
		return keepSealed(ctx, c, schema.LoginKey(login.Name), secret, false)
	}); err != nil {
		return err
	}
	a.Say("the kernel holds the login %s, sealed: %s use it from their next start", login.Name, strings.Join(login.Users(), ", "))
	return nil
}

// showLogin runs the host's own command that shows a token, in a home that no agent and no session of the user has.
func (a *app) showLogin(ctx context.Context, login *preset.Login) error {
	if login.Get == nil {
		return nil
	}
	program, err := exec.LookPath(login.Get[0])
	if err != nil {
		return nil // they may have one already
	}
	state, err := cli.StateDir()
	if err != nil {
		return err
	}
	home := filepath.Join(state, "logins", login.Name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("make home for a login: %w", err)
	}
	a.Say("%s shows a token; copy it", quote.Command(login.Get...))
	if err := a.runLogin(ctx, home, program, login.Get[1:], nil); err != nil && ctx.Err() == nil {
		a.Say("%s failed (%s); a token that you have already can be typed all the same", quote.Command(login.Get...), view.Escaped(err.Error()))
	}
	return context.Cause(ctx)
}

// keepSealed has the kernel keep a secret under a key below vault/, sealed with its host key or, if own, with the key of the user that it
// has for secrets.
func keepSealed(ctx context.Context, c *client.Client, key, secret string, own bool) error {
	in := &schema.SealInput{Plaintext: secret, AAD: &key}
	if !own {
		in.Key = new("host")
	}
	sealed, err := client.Call(ctx, c, schema.CryptoSeal, in)
	if err != nil {
		return err
	}
	value, err := schema.Marshal(sealed.Value)
	if err != nil {
		return err
	}
	_, err = client.Call(ctx, c, schema.MemorySet, &schema.MemorySetInput{Key: key, Value: value})
	return err
}

// credential returns an error for a text that no header could hold.
func credential(secret string) error {
	switch {
	case secret == "":
		return errors.New("there is no key or token")
	case len(secret) > longestCredential:
		return fmt.Errorf("a key or token has at most %d bytes", longestCredential)
	case !utf8.ValidString(secret) || strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("a key or token is one word, without control characters")
	}
	return nil
}
