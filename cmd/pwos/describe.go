package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newDescribe(a *app) *cobra.Command {
	var failures bool
	cmd := &cobra.Command{
		Use:   "describe [TYPE]",
		Short: "list the syscalls, or show how to call one",
		Long: `describe asks the kernel for its syscalls. With a TYPE it shows that one: what it
does, its data and its answer.

If stdout is no terminal, each syscall is a line of JSON with the JSON Schemas of
its data and of its answer.

With --errors it lists the ids of errors instead, without asking a kernel: their
codes in both dialects, the exit status of a verb that ends with it, their meaning,
and the fix. With an ID it shows that one.`,
		Example: `  pwos describe
  pwos describe Syscall.Ping
  pwos describe --json Syscall.Ping
  pwos describe --errors
  pwos describe --errors memory.not_found`,
		Args:              cli.Arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeType,
		RunE: func(cmd *cobra.Command, args []string) error {
			if failures {
				return a.describeErrors(args)
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				return a.describe(ctx, c, args)
			})
		},
	}
	cmd.Flags().BoolVar(&failures, "errors", false, "list the ids of errors, or show the one given")
	return cmd
}

// describeErrors prints the catalogue of errors, or the entry of one id.
func (a *app) describeErrors(ids []string) error {
	entries := fault.Catalogue()
	if len(ids) == 1 {
		one, ok := fault.Lookup(fault.ID(ids[0]))
		if !ok {
			return fault.NameNotFound.New("no error has the id %s", ids[0]).WithFix(`"pwos describe --errors" lists them`)
		}
		entries = []fault.Entry{one}
	}
	l := a.Listing("id", "code", "event code", "exit", "meaning", "fix")
	for _, e := range entries {
		o := view.Object(nil).Text("id", string(e.ID)).Integer("code", int64(e.Kind.Status())).Text("event_code", e.Kind.Word()).
			Integer("exit", int64(e.ID.Exit())).Text("meaning", e.Meaning).Text("fix", e.Fix)
		if err := l.Add(o.Close(), string(e.ID), strconv.Itoa(e.Kind.Status()), e.Kind.Word(), strconv.Itoa(e.ID.Exit()), e.Meaning, e.Fix); err != nil {
			return err
		}
	}
	return l.End()
}

func (a *app) describe(ctx context.Context, c *client.Client, types []string) error {
	if len(types) == 1 {
		raw, err := describeOne(ctx, c, types[0])
		if err != nil {
			return err
		}
		return a.printSyscall(raw)
	}
	types, err := listSyscalls(ctx, c)
	if err != nil {
		return err
	}
	l := a.Listing("type", "kind", "description")
	for _, typ := range types {
		raw, err := describeOne(ctx, c, typ)
		if err != nil {
			return err
		}
		d := view.MemberTexts(raw)
		if err := l.Add(raw, d["name"], d["kind"], d["description"]); err != nil {
			return err
		}
	}
	return l.End()
}

// listSyscalls lists the syscalls that the caller may make.
func listSyscalls(ctx context.Context, c *client.Client) ([]string, error) {
	list, err := client.Call(ctx, c, schema.SyscallList, &schema.ListInput{})
	if err != nil {
		return nil, err
	}
	return list.Syscalls, nil
}

// describeOne returns the kernel's description of one syscall.
func describeOne(ctx context.Context, c *client.Client, typ string) ([]byte, error) {
	data := view.Object(nil).Text("name", typ).Close()
	answer, err := c.Call(ctx, schema.KindQuery, "Syscall.Describe", data)
	return answer.Data, err
}

// printSyscall prints a description: as JSON unchanged, or formatted for people.
func (a *app) printSyscall(raw schema.Value) error {
	if a.WantsJSON() {
		return a.PrintLine(raw)
	}
	return a.Print(view.SyscallText(raw, a.Width()))
}
