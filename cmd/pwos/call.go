package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

// callFlags are the flags of `pwos call`.
type callFlags struct {
	data, kind                      string
	id, correlation, idempotencyKey string
	pid                             int64
	explain                         bool
}

func newCall(a *app) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call TYPE [key=value ...]",
		Short: "send one message and print its answer's data",
		Long: `call sends one message and prints the data of its answer.

Each key=value is a member of the message's data. A value that is JSON is taken as
that, anything else is a string; quote what would be JSON but is to be a string:
'version="1"'. --data gives all of the data as JSON, to which key=value adds.

With --explain nothing is done: call prints what the kernel would ask of the message,
stage by stage, and by what it is allowed or refused. Exit status: 0 it would be done,
9 it would wait for an approval, else as the call itself would exit: 3 denied, 5 quota.`,
		Example: `  pwos call Syscall.Echo message=hello
  pwos call Syscall.Ping payload='{"n": [1, 2.50]}'
  pwos call Syscall.Ping --data '{"payload": null}' --id my-1
  pwos call --explain --pid 7 Memory.Set key=prod/a value=1`,
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeType,
		RunE: func(cmd *cobra.Command, args []string) error {
			var pid *int64
			if cmd.Flags().Changed("pid") {
				pid = &f.pid
			}
			m, err := f.message(args[0], args[1:], pid)
			if err != nil {
				return usage(cmd, err)
			}
			if f.explain {
				for _, other := range []string{"kind", "id", "correlation", "idempotency-key"} {
					if cmd.Flags().Changed(other) {
						return usage(cmd, fmt.Errorf("--explain makes no call, and takes no --%s", other))
					}
				}
				return a.explain(cmd.Context(), &schema.CheckInput{Syscall: m.Type, Data: m.Data})
			}
			return a.call(cmd.Context(), m)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "the message's data, one JSON value")
	flags.StringVar(&f.kind, "kind", "", "command or query (default: what the syscall table says; command where it does not know the type)")
	flags.StringVar(&f.id, "id", "", "the message's id (default: a fresh UUIDv7)")
	flags.StringVar(&f.correlation, "correlation", "", "id of the conversation that the message belongs to")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "runs a command once, however often it is sent with this key")
	flags.Int64Var(&f.pid, "pid", 0, "the process to act as, or that the call is about: data member pid")
	flags.BoolVar(&f.explain, "explain", false, "do nothing: say what would happen, and why")
	return cmd
}

// message builds what the command line asks for; its errors are wrong usage.
func (f *callFlags) message(typ string, members []string, pid *int64) (schema.Message, error) {
	m := schema.Message{
		Type: typ,
		Meta: schema.Metadata{ID: f.id, Correlation: f.correlation, IdempotencyKey: f.idempotencyKey},
	}
	if !schema.ValidType(typ) {
		return m, fmt.Errorf("%q is no message type: one looks like Syscall.Ping, and \"pwos describe\" lists them", typ)
	}
	var err error
	if m.Kind, err = kindFor(typ, f.kind); err != nil {
		return m, err
	}
	if pid != nil {
		members = append([]string{fmt.Sprintf("pid=%d", *pid)}, members...)
	}
	m.Data, err = buildData(f.data, members)
	return m, err
}

// kindFor is the kind to send typ as. What the table does not know is sent as a command: the kernel then says that it
// does not know it either.
func kindFor(typ, asked string) (schema.Kind, error) {
	switch asked {
	case "command":
		return schema.KindCommand, nil
	case "query":
		return schema.KindQuery, nil
	case "":
		if row, ok := schema.Lookup(typ); ok {
			return row.Kind, nil
		}
		return schema.KindCommand, nil
	}
	return 0, fmt.Errorf("--kind is command or query, not %q", asked)
}

func (a *app) call(ctx context.Context, m schema.Message) (err error) {
	ctx, cancel := a.bound(ctx, usualTimeout)
	defer cancel()
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	answer, err := c.Do(ctx, m)
	if err != nil {
		return err
	}
	return a.printValue(answer.Data)
}

// completeType completes the first argument to a message type.
func completeType(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var types []cobra.Completion
	for _, row := range schema.Syscalls() {
		if !row.Internal { // what nobody else may call
			types = append(types, cobra.CompletionWithDesc(row.Type, row.Description))
		}
	}
	return types, cobra.ShellCompDirectiveNoFileComp
}
