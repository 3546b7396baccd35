package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// callFlags are the flags of `pwos call`.
type callFlags struct {
	data, kind                      string
	id, correlation, idempotencyKey string
	as                              schema.Target
	progress, explain               bool
}

func newCall(a *app) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call TYPE [key=value ...]",
		Short: "send one message and print its answer's data",
		Long: `call sends one message and prints the data of its answer.

Each key=value is a member of the message's data. A value that is valid JSON is sent as
JSON, any other value as a string. To send valid JSON as a string, quote it:
'version="1"'. --data gives the whole data as JSON; key=value adds to it.

With --explain the call is not made: call prints the checks that the kernel would apply,
stage by stage, and what allows or refuses it. Exit status: 0 it would be done,
9 it would wait for an approval, else the status of the call itself: 3 denied, 5 quota.`,
		Example: `  pwos call Syscall.Echo message=hello
  pwos call Syscall.Ping payload='{"n": [1, 2.50]}'
  pwos call Syscall.Ping --data '{"payload": null}' --id my-1
  pwos call --explain --pid 7 Memory.Set key=prod/a value=1`,
		Args:              cli.Arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeType,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := f.message(args[0], args[1:]); err != nil { // before a kernel is started for it
				return cli.Usage(cmd, err)
			}
			if f.explain {
				for _, other := range []string{"kind", "id", "correlation", "idempotency-key", "progress"} {
					if cmd.Flags().Changed(other) {
						return cli.Usage(cmd, fmt.Errorf("--explain makes no call, and takes no --%s", other))
					}
				}
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				m, err := f.message(args[0], args[1:]) // with the PID of --pid, which is known now
				switch {
				case err != nil:
					return cli.Usage(cmd, err)
				case f.explain:
					return a.explainOn(ctx, c, &schema.CheckInput{Syscall: m.Type, Data: m.Data})
				}
				return a.call(ctx, c, m, f.progress)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "the message's data, one JSON value")
	flags.StringVar(&f.kind, "kind", "", "command or query (default: what the syscall table says; command where it does not know the type)")
	flags.StringVar(&f.id, "id", "", "the message's id (default: a fresh UUIDv7)")
	flags.StringVar(&f.correlation, "correlation", "", "id of the conversation that the message belongs to")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "run the command once, however often it is sent with this key")
	flags.BoolVar(&f.progress, "progress", false, "print the progress of the call to stderr, if its provider reports it")
	a.AgentFlag(cmd, &f.as, "pid", "pid", "process to act as, or that the call is about: the data member pid")
	flags.BoolVar(&f.explain, "explain", false, "do not make the call: show what would happen, and why")
	return cmd
}

// message builds the message that the command line describes. Its errors are usage errors.
func (f *callFlags) message(typ string, members []string) (schema.Message, error) {
	m := schema.Message{
		Type: typ,
		Meta: schema.Metadata{ID: f.id, Correlation: f.correlation, IdempotencyKey: f.idempotencyKey},
	}
	if !schema.ValidType(typ) {
		return m, fmt.Errorf("%q is not a message type such as Syscall.Ping: \"pwos describe\" lists them", typ)
	}
	var err error
	if m.Kind, err = kindFor(typ, f.kind); err != nil {
		return m, err
	}
	if f.as.PID != nil {
		members = append([]string{fmt.Sprintf("pid=%d", *f.as.PID)}, members...)
	}
	m.Data, err = buildData(f.data, members)
	return m, err
}

// kindFor returns the kind of message to send for typ. An unknown type is sent as a command, so that the kernel reports
// the error.
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

func (a *app) call(ctx context.Context, c *client.Client, m schema.Message, progress bool) error {
	var report func(*schema.ProgressedEvent)
	if progress {
		report = a.progressed
	}
	answer, err := c.DoReporting(ctx, m, report)
	if err != nil {
		if refused := client.Answered(err); refused != nil && view.Exceptable(refused.ID) {
			if pid, who := c.SelfPID(ctx); who == nil && pid == 0 {
				return &cli.Excepted{Refusal: err, Seq: client.SeqOf(&answer)}
			}
		}
		return err
	}
	return a.PrintValue(answer.Data)
}

// progressed prints a progress report of a call.
func (a *app) progressed(e *schema.ProgressedEvent) {
	text := strconv.FormatFloat(e.Progress, 'g', -1, 64)
	if e.Total != nil {
		text += " of " + strconv.FormatFloat(*e.Total, 'g', -1, 64)
	}
	if e.Message != nil {
		text += ": " + strconv.QuoteToGraphic(*e.Message)
	}
	a.Say("%s", text)
}

// completeType completes the first argument with the types of the syscalls.
func completeType(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var types []cobra.Completion
	for _, row := range schema.Syscalls() {
		if !row.Internal { // clients may not call it
			types = append(types, cobra.CompletionWithDesc(row.Type, row.Description))
		}
	}
	return types, cobra.ShellCompDirectiveNoFileComp
}

// buildData builds a message's data from --data and the key=value arguments. Its errors are usage errors.
func buildData(base string, members []string) ([]byte, error) {
	data := bytes.TrimSpace([]byte(base))
	if len(data) == 0 {
		data = []byte("{}")
	}
	if !schema.Valid(data) {
		return nil, errors.New("--data is not one strict JSON value")
	}
	if len(members) == 0 {
		return data, nil
	}
	taken, ok := view.Members(data)
	if !ok {
		return nil, errors.New("--data must be a JSON object if key=value arguments are given too")
	}
	data = bytes.TrimSpace(data[:len(data)-1]) // without the closing brace
	for _, member := range members {
		name, value, found := strings.Cut(member, "=")
		switch _, twice := taken[name]; {
		case !found || name == "":
			return nil, fmt.Errorf("%q does not have the form key=value", member)
		case !utf8.ValidString(member):
			return nil, fmt.Errorf("%q is not UTF-8", member)
		case twice:
			return nil, fmt.Errorf("%s is given twice", name)
		}
		if len(taken) > 0 {
			data = append(data, ',')
		}
		taken[name] = schema.Value(value)
		data = append(schema.AppendString(data, name), ':')
		data = appendArgument(data, value)
	}
	return append(data, '}'), nil
}

// appendArgument appends the value of key=value: unchanged if it is valid JSON, else as a JSON string.
func appendArgument(dst []byte, value string) []byte {
	if schema.Valid([]byte(value)) {
		return append(dst, value...)
	}
	return schema.AppendString(dst, value)
}

// explain prints what a call would do, and returns the exit status that the call would have.
func (a *app) explain(ctx context.Context, in *schema.CheckInput) error {
	return a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error { return a.explainOn(ctx, c, in) })
}

// explainOn is explain on an existing connection.
func (a *app) explainOn(ctx context.Context, c *client.Client, in *schema.CheckInput) error {
	data, err := cli.Invoke(ctx, c, schema.CapabilityCheck.Type, in)
	if err != nil {
		return err
	}
	out, err := view.AnswerAs[schema.CheckOutput](schema.CapabilityCheck.Type, data)
	if err != nil {
		return err
	}
	if a.WantsJSON() {
		err = a.PrintLine(data)
	} else {
		err = a.printExplained(&out)
	}
	if err != nil || out.Allowed {
		return err
	}
	return cli.ExitStatus(fault.ID(out.Error).Exit())
}

// printExplained prints the answer of Capability.Check as a table.
func (a *app) printExplained(out *schema.CheckOutput) error {
	t := new(view.Table)
	t.Header("stage", "verdict", "why")
	var end schema.CheckStage
	for _, end = range out.Stages {
		t.Row(end.Stage, end.Verdict, view.Escaped(end.Why))
	}
	if err := a.PrintTable(t); err != nil {
		return err
	}
	switch who := ""; {
	case out.Allowed:
		if out.PID != nil && out.Tick != nil {
			who = fmt.Sprintf(" by pid %d at tick %d", *out.PID, *out.Tick)
		}
		a.Say("%s would be done%s", out.Type, who)
	case end.Verdict == "asks":
		a.Say("%s would wait for an approval", out.Type)
	default:
		a.Say("%s would be refused: %s (%d)", out.Type, out.Error, out.Code)
	}
	if end.Fix != "" {
		a.Say("fix: %s", end.Fix)
	}
	if end.Exception != "" {
		a.Say(`the narrowest change that allows it: in the rule at %s, before its ";": %s`, end.At, end.Exception)
	}
	return nil
}
