package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
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

func newAuthKeys(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "keys [FILE]",
		Short: "show which keys authorized_keys admits",
		Long: `keys reads a file of authorized keys as the kernel does, by default the one beside the
configuration, and shows whom each line admits, which lines are refused, and why.
It needs no kernel.

A line without options is for the operator. A line with allow, quota, origin, agent
or expiry-time before the key is for an agent, which may do what the line says:

  agent="scout",allow="Memory.*,Syscall.SendMsg" ssh-ed25519 AAAA... me@laptop

This command does not check whether the allowed syscalls exist: the kernel logs that
when it reads the file. Exit status: 4 no such file, which means open mode.`,
		Example: `  pwos auth keys
  pwos auth keys /etc/pwos/authorized_keys
  pwos auth keys --json`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := client.AuthorizedKeys()
			if len(args) == 1 {
				path = args[0]
			}
			return a.authKeys(path)
		},
	}
}

func (a *app) authKeys(path string) error {
	if path == "" {
		return errors.New("find authorized keys: set HOME or PWOS_CONFIG, or name the file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find authorized keys: %w", err)
	}
	keys, err := access.NewSource(path, time.Now).Load()
	if errors.Is(err, fs.ErrNotExist) {
		return fault.PlaceNotThere.New("%s does not exist: a kernel that starts without it is in open mode", path)
	}
	if err != nil {
		return err
	}
	l := a.Listing("line", "key", "who", "may call", "holds at most", "until", "comment")
	for _, k := range keys.Keys() {
		who, may, quotas := "the operator", "everything", ""
		if k.Role != "" {
			who, may = "the operator, "+k.Role, map[string]string{"viewer": "queries", "approver": "queries, Approval.Decide"}[k.Role]
		}
		if k.Agent != nil {
			who, may, quotas = strings.TrimSpace("agent "+k.Agent.Name), strings.Join(k.Agent.Allow, " "), granted(k.Agent)
		}
		if err := l.Add(keyObject(k), strconv.Itoa(k.Line), k.Key.Fingerprint(), view.Escaped(who), view.Escaped(may), view.Escaped(quotas), untilOf(k), view.Escaped(k.Comment)); err != nil {
			return err
		}
	}
	for _, line := range keys.Refused() {
		o := view.Object(nil).Integer("line", int64(line.Line))
		if line.Fingerprint != "" {
			o = o.Text("key", line.Fingerprint)
		}
		if err := l.Add(o.Text("refused", line.Reason).Close(), strconv.Itoa(line.Line), line.Fingerprint, a.Style(view.Bad, "refused:")+" "+view.Escaped(line.Reason)); err != nil {
			return err
		}
	}
	return l.End()
}

// keyObject formats one line of authorized_keys as JSON.
func keyObject(k *access.AuthorizedKey) []byte {
	o := view.Object(nil).Integer("line", int64(k.Line)).Text("key", k.Key.Fingerprint()).Text("type", k.Key.Type())
	if k.Comment != "" {
		o = o.Text("comment", k.Comment)
	}
	if k.Agent == nil {
		o = o.Text("as", "operator")
		if k.Role != "" {
			o = o.Text("role", k.Role)
		}
	} else {
		o = o.Text("as", "agent")
		if k.Agent.Name != "" {
			o = o.Text("agent", k.Agent.Name)
		}
		if k.Agent.Origin != "" {
			o = o.Text("origin", k.Agent.Origin)
		}
		var quotas view.Object
		for _, resource := range slices.Sorted(maps.Keys(k.Agent.Quotas)) {
			quotas = quotas.Number(resource, k.Agent.Quotas[resource], -1)
		}
		o = o.Raw("allow", view.Texts(k.Agent.Allow)).Raw("quotas", quotas.Close())
	}
	if k.NoTouch {
		o = o.Boolean("no_touch_required", true)
	}
	if !k.Expires.IsZero() {
		o = o.Text("expires", untilOf(k))
	}
	return o.Close()
}

func granted(grant *access.AgentGrant) string {
	var all []string
	for _, resource := range slices.Sorted(maps.Keys(grant.Quotas)) {
		all = append(all, resource+" "+view.Units(grant.Quotas[resource]))
	}
	return strings.Join(all, ", ")
}

func untilOf(k *access.AuthorizedKey) string {
	if k.Expires.IsZero() {
		return "ever"
	}
	return k.Expires.UTC().Format(time.RFC3339)
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

// trustFlags are the flags of `pwos auth trust`.
type trustFlags struct{ forget, list bool }

func newAuthTrust(a *app) *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use:   "trust [FINGERPRINT]",
		Short: "decide which kernel is trusted",
		Long: `trust manages the host keys of kernels. A client remembers in known_kernels, beside
the configuration, which key a kernel had at the first connection. It signs nothing for
a kernel that has another key now, or that no longer asks for a key.

Without a flag, trust asks the running kernel for its key and remembers it. If
another key is known, it replaces that only by the key with the given FINGERPRINT: compare
it with the output of "ssh-keygen -lf" for host_key in the kernel's state directory.

--forget drops the key of the kernel; the next login trusts the key that it sees.
--list shows the known keys.`,
		Example: `  pwos auth trust
  pwos auth trust SHA256:mVPwvezndPv/ARoIadVY98vAC0g+P/5633yTC4d/wXE
  pwos auth trust --forget
  pwos auth trust --list`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.forget && f.list || len(args) > 0 && (f.forget || f.list) {
				return cli.Usage(cmd, errors.New("give one of FINGERPRINT, --forget and --list"))
			}
			known := client.KnownKernels()
			options, err := a.Options()
			switch {
			case err != nil:
				return err
			case f.list:
				return a.listTrusted(known)
			case f.forget:
				return a.forgetKernel(cmd.Context(), known, options)
			}
			return a.trustKernel(cmd.Context(), known, options, append(args, "")[0])
		},
	}
	cmd.Flags().BoolVar(&f.forget, "forget", false, "drop the known key of the kernel")
	cmd.Flags().BoolVar(&f.list, "list", false, "show which kernels are known")
	return cmd
}

func (a *app) listTrusted(known access.KnownKernels) error {
	all, err := known.List()
	if err != nil {
		return err
	}
	l := a.Listing("kernel's key", "type", "socket")
	for _, k := range all {
		line := view.Object(nil).Text("socket", k.Socket).Text("key", k.Key.Fingerprint()).Text("type", k.Key.Type()).Close()
		if err := l.Add(line, k.Key.Fingerprint(), k.Key.Type(), view.Escaped(k.Socket)); err != nil {
			return err
		}
	}
	return l.End()
}

func (a *app) forgetKernel(ctx context.Context, known access.KnownKernels, options client.Options) error {
	socket, err := options.KernelName()
	if err != nil {
		return err
	}
	old, err := known.Lookup(socket)
	switch {
	case err != nil:
		return err
	case old.IsZero():
		a.Say("no kernel at %s is known: there is nothing to forget", socket)
		return nil
	}
	if err := known.Forget(ctx, socket); err != nil {
		return err
	}
	a.Say("forgot the kernel at %s: its host key was %s", socket, old.Fingerprint())
	return nil
}

func (a *app) trustKernel(ctx context.Context, known access.KnownKernels, options client.Options, want string) error {
	ctx, cancel := a.Bound(ctx, cli.UsualTimeout)
	defer cancel()
	key, err := client.HostKey(ctx, options)
	if err != nil {
		return err
	}
	socket, err := options.KernelName()
	if err != nil {
		return err
	}
	old, err := known.Lookup(socket)
	if err != nil {
		return err
	}
	has := key.Fingerprint()
	switch {
	case key.IsZero():
		return fault.AuthDowngraded.New("the kernel at %s has no key to show: it is in open mode", socket)
	case want != "" && want != has:
		return fault.AuthHostChanged.New("the kernel at %s has the host key %s, not %s: nothing was changed", socket, has, want)
	case want == "" && !old.IsZero() && old != key:
		return fault.AuthHostChanged.New("the kernel at %s had the host key %s, and has %s now: if you know why, run %s", socket, old.Fingerprint(), has, quote.Command("pwos", "auth", "trust", has))
	}
	if err := known.Accept(ctx, socket, key); err != nil {
		return err
	}
	t := new(view.Table)
	t.Row("trusted", view.Escaped(socket))
	t.Row("kernel's key", has)
	return a.PrintEither(view.Object(nil).Text("socket", socket).Text("key", has).Close(), t)
}
