package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema/fault"
)

// trustFlags are the flags of `pwos auth trust`.
type trustFlags struct{ forget, list bool }

func newAuthTrust(a *app) *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use:   "trust [FINGERPRINT]",
		Short: "decide which kernel is trusted",
		Long: `trust is about the host keys of kernels. A client remembers in known_kernels, beside
the configuration, which key a kernel had when it first met it, and signs nothing for a
kernel that has another one, or that asks for no key any more.

Without a flag, trust asks the running kernel for its key and remembers it. Where
another key is known it does so only for the FINGERPRINT that it is given: compare it
with what "ssh-keygen -lf" says of host_key in the kernel's state directory.

--forget drops what is known of the kernel; the next login trusts the one that it meets.
--list shows what is known.`,
		Example: `  pwos auth trust
  pwos auth trust SHA256:mVPwvezndPv/ARoIadVY98vAC0g+P/5633yTC4d/wXE
  pwos auth trust --forget
  pwos auth trust --list`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.forget && f.list || len(args) > 0 && (f.forget || f.list) {
				return usage(cmd, errors.New("give one of FINGERPRINT, --forget and --list"))
			}
			known := client.KnownKernels()
			options, err := a.options()
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
	cmd.Flags().BoolVar(&f.forget, "forget", false, "drop what is known of the kernel")
	cmd.Flags().BoolVar(&f.list, "list", false, "show which kernels are known")
	return cmd
}

func (a *app) listTrusted(known access.KnownKernels) error {
	all, err := known.List()
	if err != nil {
		return err
	}
	t := new(table)
	t.header("kernel's key", "type", "socket")
	for _, k := range all {
		if !a.wantsJSON() {
			t.row(k.Key.Fingerprint(), k.Key.Type(), escaped(k.Socket))
			continue
		}
		line := object(nil).text("socket", k.Socket).text("key", k.Key.Fingerprint()).text("type", k.Key.Type()).close()
		if err := a.printLine(line); err != nil {
			return err
		}
	}
	return t.write(a.stdout)
}

func (a *app) forgetKernel(ctx context.Context, known access.KnownKernels, options client.Options) error {
	socket, err := options.SocketName()
	if err != nil {
		return err
	}
	old, err := known.Lookup(socket)
	switch {
	case err != nil:
		return err
	case old.IsZero():
		a.say("no kernel at %s is known: there is nothing to forget", socket)
		return nil
	}
	if err := known.Forget(ctx, socket); err != nil {
		return err
	}
	a.say("forgot the kernel at %s: its host key was %s", socket, old.Fingerprint())
	return nil
}

func (a *app) trustKernel(ctx context.Context, known access.KnownKernels, options client.Options, want string) error {
	ctx, cancel := a.bound(ctx, usualTimeout)
	defer cancel()
	key, err := client.HostKey(ctx, options)
	if err != nil {
		return err
	}
	socket, err := options.SocketName()
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
		return fault.AuthHostChanged.New("the kernel at %s had the host key %s, and has %s now: if you know why, run \"pwos auth trust %[3]s\"", socket, old.Fingerprint(), has)
	}
	if err := known.Accept(ctx, socket, key); err != nil {
		return err
	}
	if a.wantsJSON() {
		return a.printLine(object(nil).text("socket", socket).text("key", has).close())
	}
	t := new(table)
	t.row("trusted", escaped(socket))
	t.row("kernel's key", has)
	return t.write(a.stdout)
}
