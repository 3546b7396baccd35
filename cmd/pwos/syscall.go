package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// respond prints the JSON-RPC 2.0 response of a call and returns err, which sets the exit status.
func (a *app) respond(data []byte, err error, failure *fault.Fault) error {
	var response []byte
	if failure == nil {
		response = schema.AppendRPCResult(nil, data)
	} else {
		response = schema.AppendRPCError(nil, failure)
	}
	if _, writeErr := a.Stdout.Write(response); writeErr != nil {
		return errors.Join(err, fmt.Errorf("write response: %w", writeErr))
	}
	return err
}

// misused is respond for an invalid command line.
func (a *app) misused(err error) error {
	return a.respond(nil, err, fault.UsageInvalid.New("%s", err.Error()))
}

// rpcFault converts err to a kernel's fault; nil for nil.
func rpcFault(err error, in *schema.CallInput) *fault.Fault {
	if err == nil {
		return nil
	}
	if kernel := client.Answered(err); kernel != nil {
		failure := remote(kernel)
		if failure.Code() == 404 && unknownName(in) {
			failure.Kind = fault.UnknownSyscall
		}
		return failure
	}
	kind := fault.Internal
	switch cli.Status(err, false) {
	case fault.ExitUnknown:
		kind = fault.Timeout
	case fault.ExitDenied:
		kind = fault.Unauthenticated
	case fault.ExitUnreachable:
		kind = fault.Unavailable
	case fault.ExitError:
		if own, ok := errors.AsType[*fault.Fault](err); ok {
			return own
		}
	}
	return &fault.Fault{Kind: kind, Message: err.Error()}
}

// remote restores the kind of a kernel's error from its code.
func remote(answer *fault.Fault) *fault.Fault {
	failure := *answer
	switch failure.Code() {
	case 404:
		failure.Kind = fault.NotFound
	case 422:
		failure.Kind = fault.InvalidInput
	}
	if failure.Cause != nil {
		failure.Cause = remote(failure.Cause)
	}
	return &failure
}

// unknownName reports whether a 404 means an unknown syscall and not a missing object: JSON-RPC has two
// codes for these, the kernel's protocol has one.
func unknownName(in *schema.CallInput) bool {
	if schema.UserSpace(in.Syscall) {
		return true
	}
	typ, _, failure := schema.ShortCall(in.Syscall, in.Args)
	if failure != nil {
		return failure.Kind == fault.UnknownSyscall
	}
	_, ok := schema.Lookup(typ)
	return !ok
}

// syscallFlags are the flags of `pwos syscall`.
type syscallFlags struct {
	root, origin, stateDir string
	idempotencyKey         string
	as                     schema.Target
}

func newSyscall(a *app) *cobra.Command {
	var f syscallFlags
	cmd := &cobra.Command{
		Use:   "syscall [flags] NAME [ARGS...]",
		Short: "make one call of the ABI, and print one JSON-RPC 2.0 response",
		Long: `syscall is pwosSyscall(NAME, ...ARGS) for a command line: it prints exactly one
JSON-RPC 2.0 response in every case. NAME is a short name of the kernel, such as
ping, describe or memory, or the path of a tool: os/tools/name, ./name. An argument that
is valid JSON is sent as JSON, any other argument as a string. Flags precede NAME: all that
follows NAME belongs to the call.

The error's code is -32601 for an unknown name, -32602 for invalid arguments, -32700 for
an argument that is not text, or that begins like an object or an array but is not valid
JSON, else -32000; its data is the kernel's error.

If no kernel runs, syscall starts one with the given --root, --origin and
--state-dir. If it cannot start one either, it makes the call itself, on the state
that the next kernel finds. A running kernel keeps its root and origin:
to name others is an error.`,
		Example: `  pwos syscall ping 1
  pwos syscall memory set notes/1 '{"text": "hello"}'
  pwos syscall describe Memory.Set
  pwos syscall --root ./my-os resolve os:///agents/scout.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.misused(cli.Usage(cmd, errors.New("syscall needs the NAME of one")))
			}
			in, failure := f.input(cmd, args)
			if failure != nil {
				return a.respond(nil, cli.Usage(cmd, failure), failure)
			}
			data, err := a.syscall(cmd.Context(), &f, in)
			return a.respond(data, err, rpcFault(err, in))
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return a.misused(cli.Usage(cmd, cli.FlagError(cmd, err))) })
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.root, "root", "", "root of os:///… for a kernel that is started: a directory, or an https: address")
	flags.StringVar(&f.origin, "origin", "", "the operator's origin for a kernel that is started: an address, or a name")
	flags.StringVar(&f.stateDir, "state-dir", "", "state directory for a kernel that is started")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "run the command once, however often it is sent with this key")
	a.AgentFlag(cmd, &f.as, "pid", "pid", "the process to act as")
	return cmd
}

// input returns the call that the command line describes.
func (f *syscallFlags) input(cmd *cobra.Command, args []string) (*schema.CallInput, *fault.Fault) {
	in := &schema.CallInput{Syscall: args[0]}
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return nil, fault.WireInvalidJSON.New("%q is not UTF-8", arg)
		}
	}
	for _, arg := range args[1:] {
		if (strings.HasPrefix(arg, "{") || strings.HasPrefix(arg, "[")) && !schema.Valid([]byte(arg)) {
			return nil, fault.WireInvalidJSON.New("%s starts like JSON and is not valid JSON: quote it if it is a text, '\"{\"'", fault.Clip(arg))
		}
		in.Args = append(in.Args, appendArgument(nil, arg))
	}
	in.Target = f.as
	return in, nil
}

// daemonArgs returns the flags for a daemon that the call starts, with absolute paths.
func (f *syscallFlags) daemonArgs() (args []string, err error) {
	root, state := f.root, f.stateDir
	if root != "" && !strings.HasPrefix(strings.ToLower(root), "https:") {
		root, err = filepath.Abs(root)
	}
	if state != "" && err == nil {
		state, err = filepath.Abs(state)
	}
	if err != nil {
		return nil, fmt.Errorf("find directory: %w", err)
	}
	for _, flag := range []struct{ name, value string }{{"root", root}, {"origin", f.origin}, {"state-dir", state}} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	return args, nil
}

// syscall makes the call on the running kernel, on one that it starts, or else in this process (ABI 7).
func (a *app) syscall(ctx context.Context, f *syscallFlags, in *schema.CallInput) (data []byte, err error) {
	ctx, cancel := a.Bound(ctx, cli.UsualTimeout)
	defer cancel()
	args, err := f.daemonArgs()
	if err != nil {
		return nil, err
	}
	c, err := a.DialWith(ctx, cli.Dialing{Args: args})
	if errors.Is(err, fault.DaemonUnreachable) && a.Kernel == "" { // a kernel of this machine is not the one that was asked
		return a.once(ctx, f, args, in, err)
	}
	if err != nil {
		return nil, err
	}
	defer cli.CloseInto(&err, c)
	if err := a.LookUp(ctx, c); err != nil {
		return nil, err
	}
	if f.root != "" || f.origin != "" {
		if err := f.sameParameters(ctx, c, args); err != nil {
			return nil, err
		}
	}
	m := schema.Message{Type: schema.CallType, Meta: schema.Metadata{IdempotencyKey: f.idempotencyKey}}
	answer, err := cli.Request(ctx, c, m, verbatim(in))
	return answer.Data, err
}

// verbatim returns the data of a call with the arguments unchanged.
func verbatim(in *schema.CallInput) schema.Value {
	o := view.Object(nil).Text("syscall", in.Syscall)
	args := []byte{'['}
	for i, arg := range in.Args {
		if i > 0 {
			args = append(args, ',')
		}
		args = append(args, arg...)
	}
	o = o.Raw("args", append(args, ']'))
	if in.PID != nil {
		o = o.Integer("pid", *in.PID)
	}
	return o.Close()
}

// once makes the call in CLI mode (ABI 7.2). unreachable is the error of the attempt to reach a kernel.
func (a *app) once(ctx context.Context, f *syscallFlags, args []string, in *schema.CallInput, unreachable error) ([]byte, error) {
	if f.idempotencyKey != "" {
		return nil, fmt.Errorf("%w; --idempotency-key needs a running kernel", unreachable)
	}
	if in.PID != nil && *in.PID < 0 { // a name: no kernel runs that could know it
		return nil, unreachable
	}
	data, err := daemon.Once(ctx, args, os.Getenv, a.Stderr, in)
	failure, answered := errors.AsType[*fault.Fault](err)
	switch {
	case err == nil:
		return data, nil
	case answered && failure.ID != fault.DaemonLaunch:
		return nil, client.AsAnswered(failure)
	}
	return nil, fault.DaemonUnreachable.New("%s; and the call cannot be made here: %s", unreachable, err).Wrap(errors.Join(unreachable, err))
}

// sameParameters returns an error if the running kernel's root or origin differs from the flags: a running kernel cannot change them
// (ABI 6.4).
func (f *syscallFlags) sameParameters(ctx context.Context, c *client.Client, args []string) error {
	root, origin, err := offline.Parameters(args, os.Getenv)
	if err != nil {
		return err
	}
	data, err := cli.Invoke(ctx, c, schema.MemoryGet.Type, &schema.MemoryGetInput{Key: "proc/cmdline"})
	if err != nil {
		return err
	}
	members, _ := view.Members(data)
	for _, given := range []struct {
		name, value, wanted string
	}{{"root", f.root, root}, {"origin", f.origin, origin}} {
		if has, _ := view.Text(members[given.name]); given.value != "" && has != given.wanted {
			return fault.KernelMismatch.New("the running kernel has the %s %q, not %q: leave out --%s, or shut it down first",
				given.name, has, given.wanted, given.name)
		}
	}
	return nil
}
