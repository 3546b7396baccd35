package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

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
