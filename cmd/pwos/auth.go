package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newAuth(a *app) *cobra.Command {
	return cli.Group("auth", "show keys, logins and trusted kernels",
		`auth is about the identity of both ends of a connection. If a kernel has a file
authorized_keys beside its configuration, it admits only clients with an SSH key of that
file. It also proves its own identity with a host key,
which clients remember.`,
		`  pwos auth status               # does the kernel let me in, and as whom
  pwos auth keys                 # whom does authorized_keys let in
  pwos auth trust --list         # which kernels are known here`,
		newAuthStatus(a), newAuthKeys(a), newAuthTrust(a))
}

func newAuthStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show whether the kernel admits you, and as whom",
		Long: `status logs in to the running kernel and shows the outcome: in open mode everybody who
reaches the socket is the operator; in signature mode it shows which key was accepted,
your identity, and the kernel's own key. It also lists the keys that you can offer.

It never starts a kernel. Exit status: 3 the kernel does not admit you, or has another
host key than before; 6 no kernel runs.`,
		Example: `  pwos auth status
  pwos auth status --identity ~/.ssh/id_work
  pwos auth status --json`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.authStatus(cmd.Context()) },
	}
}

// standing is the outcome of a login, and the keys that could be offered.
type standing struct {
	mode    string // none or signature
	in      bool
	who     client.Identity
	mine    []*access.Signer
	skipped []string
}

// as returns the role that the kernel sees: operator or agent.
func (s *standing) as() string {
	if s.who.PID == 0 {
		return "operator"
	}
	return "agent"
}

func (a *app) authStatus(ctx context.Context) error {
	ctx, cancel := a.Bound(ctx, cli.UsualTimeout)
	defer cancel()
	options, err := a.Options()
	if err != nil {
		return err
	}
	s := &standing{mode: "none"}
	c, loginErr := a.DialRunning(ctx)
	if loginErr == nil {
		s.in, s.who = true, c.Identity()
		if err := c.Close(); err != nil {
			return err
		}
	} else if !errors.Is(loginErr, fault.AuthLogin) {
		return loginErr
	}
	if !s.in || !s.who.Key.IsZero() {
		s.mode = "signature"
	}
	identities, err := options.Keys.Identities()
	if err != nil {
		return err
	}
	if found, err := identities.Find(ctx); err == nil {
		s.mine, s.skipped = found.Signers, found.Skipped
	} else {
		s.skipped = []string{err.Error()}
	}
	return errors.Join(a.printStanding(s, options), loginErr)
}

func (a *app) printStanding(s *standing, options client.Options) error {
	socket, err := options.KernelName()
	if err != nil {
		return err
	}
	o := view.Object(nil).Text("mode", s.mode).Text("socket", socket).Boolean("let_in", s.in)
	if s.in {
		o = o.Text("as", s.as()).Integer("pid", s.who.PID)
	}
	if !s.who.Key.IsZero() {
		o = o.Text("key", s.who.Key.Fingerprint()).Text("from", s.who.From).Text("host_key", s.who.Host.Fingerprint())
	}
	o = o.Raw("keys", keyObjects(s.mine)).Raw("not_offered", view.Texts(s.skipped))
	t := new(view.Table)
	t.Row("socket", view.Escaped(socket))
	switch {
	case !s.in:
		t.Row("you are", a.Style(view.Bad, "not let in"))
	case s.mode == "none":
		t.Row("mode", "open: everybody who reaches the socket is the operator")
	default:
		t.Row("mode", "signature: only keys in its authorized_keys")
		t.Row("kernel's key", s.who.Host.Fingerprint())
		t.Row("you showed", s.who.Key.Fingerprint()+" from "+view.Escaped(s.who.From))
	}
	if s.in {
		t.Row("you are", a.Style(view.Good, "the "+s.as())+", pid "+strconv.FormatInt(s.who.PID, 10))
	}
	for _, key := range s.mine {
		t.Row("your key", key.Key().Fingerprint()+" "+key.Key().Type()+" from "+view.Escaped(key.Source()))
	}
	if len(s.skipped) > 0 {
		t.Row("not offered", view.Escaped(strings.Join(s.skipped, "; ")))
	}
	return a.PrintEither(o.Close(), t)
}

// keyObjects formats the keys that can be offered as a JSON array.
func keyObjects(keys []*access.Signer) []byte {
	list := []byte{'['}
	for i, key := range keys {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, view.Object(nil).Text("key", key.Key().Fingerprint()).Text("type", key.Key().Type()).Text("from", key.Source()).Close()...)
	}
	return append(list, ']')
}
