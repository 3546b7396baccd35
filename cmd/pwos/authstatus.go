package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema/fault"
)

func newAuthStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show whether the kernel lets you in, and as whom",
		Long: `status logs in to the running kernel and shows the outcome: in open mode everybody who
reaches the socket is the operator; in signature mode it shows which key got you in,
as whom, and the kernel's own key. It shows too which keys there are to offer.

It never starts a kernel. Exit status: 3 where the kernel does not let you in, or is
not the one that it was; 6 where none runs.`,
		Example: `  pwos auth status
  pwos auth status --identity ~/.ssh/id_work
  pwos auth status --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.authStatus(cmd.Context()) },
	}
}

// standing is what can be told about a login.
type standing struct {
	mode    string // none or signature
	in      bool
	who     client.Identity
	mine    []*access.Signer
	skipped []string
}

// as says in a word whom the kernel takes us for.
func (s *standing) as() string {
	if s.who.PID == 0 {
		return "operator"
	}
	return "agent"
}

func (a *app) authStatus(ctx context.Context) error {
	ctx, cancel := a.bound(ctx, usualTimeout)
	defer cancel()
	options, err := a.options()
	if err != nil {
		return err
	}
	s := &standing{mode: "none"}
	c, loginErr := a.dialRunning(ctx)
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
	socket, err := options.SocketName()
	if err != nil {
		return err
	}
	if a.wantsJSON() {
		o := object(nil).text("mode", s.mode).text("socket", socket).boolean("let_in", s.in)
		if s.in {
			o = o.text("as", s.as()).integer("pid", s.who.PID)
		}
		if !s.who.Key.IsZero() {
			o = o.text("key", s.who.Key.Fingerprint()).text("from", s.who.From).text("host_key", s.who.Host.Fingerprint())
		}
		return a.printLine(o.raw("keys", keyObjects(s.mine)).raw("not_offered", texts(s.skipped)).close())
	}
	t := new(table)
	t.row("socket", escaped(socket))
	switch {
	case !s.in:
		t.row("you are", a.style(bad, "not let in"))
	case s.mode == "none":
		t.row("mode", "open: everybody who reaches the socket is the operator")
	default:
		t.row("mode", "signature: keys of its authorized_keys alone")
		t.row("kernel's key", s.who.Host.Fingerprint())
		t.row("you showed", s.who.Key.Fingerprint()+" from "+escaped(s.who.From))
	}
	if s.in {
		t.row("you are", a.style(good, "the "+s.as())+", pid "+strconv.FormatInt(s.who.PID, 10))
	}
	for _, key := range s.mine {
		t.row("your key", key.Key().Fingerprint()+" "+key.Key().Type()+" from "+escaped(key.Source()))
	}
	if len(s.skipped) > 0 {
		t.row("not offered", escaped(strings.Join(s.skipped, "; ")))
	}
	return a.printTable(t)
}

// keyObjects is a JSON array of the keys that there are to offer.
func keyObjects(keys []*access.Signer) []byte {
	list := []byte{'['}
	for i, key := range keys {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, object(nil).text("key", key.Key().Fingerprint()).text("type", key.Key().Type()).text("from", key.Source()).close()...)
	}
	return append(list, ']')
}
