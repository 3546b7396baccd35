package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newMem(a *app) *cobra.Command {
	return cli.Group("mem", "read and write the kernel's key-value memory",
		`mem is about the kernel's memory: JSON values under keys such as notes/1. Each origin
has its own keys. The kernel makes the values under proc/; vault/ takes only sealed
values. A leading slash makes no difference.`,
		`  pwos mem set notes/1 hello
  pwos mem get notes/1
  pwos mem ls notes/
  pwos mem rm notes/1`,
		newMemGet(a), newMemSet(a), newMemLs(a), newMemRm(a))
}

// asHelp is the help of --as for verbs that act for a process.
const asHelp = "process to act as (default 0, the operator)"

func newMemGet(a *app) *cobra.Command {
	in := new(schema.MemoryGetInput)
	var raw bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "print the value under a key",
		Long: `get prints the value under a key: as JSON, byte for byte as it was stored, if
stdout is no terminal. --raw prints a string without its quotes there too.

Exit status: 3 denied, 4 no such key.`,
		Example: `  pwos mem get notes/1
  pwos mem get notes/1 --raw > note.txt
  pwos mem get proc/7/status
  pwos mem get notes/1 --as 7`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Key = args[0]
			return a.Show(cmd.Context(), schema.MemoryGet.Type, in, func(data schema.Value) error {
				if text, ok := view.Text(data); ok && raw {
					return a.PrintText(text)
				}
				return a.PrintValue(data)
			})
		},
	}
	a.AgentFlag(cmd, in, "pid", "as", asHelp)
	cmd.Flags().BoolVar(&raw, "raw", false, "print a string as it is")
	return cmd
}

func newMemLs(a *app) *cobra.Command {
	var in schema.MemoryListInput
	var raw bool
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "list keys, one a line",
		Long: `ls lists all keys with PREFIX in ascending order, one a line, each with a
leading slash. If stdout is no terminal, each line is a JSON string; --raw leaves
out the quotes there too, since a key has no line ends. It prints nothing if there is no key.

ls reads page by page, so keys that are added or removed meanwhile may or may not be
listed. Keys under proc/ are listed only if PREFIX begins with that.`,
		Example: `  pwos mem ls
  pwos mem ls notes/ --limit 10
  pwos mem ls proc/
  pwos mem ls --raw | grep -c '^/notes/'`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				in.Prefix = &args[0]
			}
			return a.memLs(cmd.Context(), in, raw)
		},
	}
	a.AgentFlag(cmd, &in, "pid", "as", asHelp)
	cmd.Flags().Var(cli.Number(&in.Limit, 1), "limit", "most keys to list (default: all)")
	cmd.Flags().BoolVar(&raw, "raw", false, "print keys as they are")
	return cmd
}

// memLs prints the keys page by page, at most in.Limit of them.
func (a *app) memLs(ctx context.Context, in schema.MemoryListInput, raw bool) error {
	return a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
		return cli.Pages(in.Limit, func(limit int64) (int, bool, error) {
			in.Limit = &limit
			out, err := cli.InvokeAs(ctx, c, schema.MemoryList, &in)
			if err != nil {
				return 0, false, err
			}
			for _, key := range out.Keys {
				if err := a.printKey(key, raw); err != nil {
					return 0, false, err
				}
			}
			in.Cursor = &out.Next
			return len(out.Keys), out.Next != "", nil
		})
	})
}

func (a *app) printKey(key string, raw bool) error {
	switch {
	case raw:
		return a.PrintText(key)
	case a.WantsJSON():
		return a.PrintLine(schema.AppendString(nil, key))
	}
	return a.PrintText(view.Escaped(key))
}

func newMemRm(a *app) *cobra.Command {
	in := new(schema.MemoryDeleteInput)
	cmd := a.OneCall(&cobra.Command{
		Use:   "rm KEY",
		Short: "remove a key with its value",
		Long: `rm removes a key with its value.

Exit status: 3 denied, or the key is read-only, 4 no such key.`,
		Example: `  pwos mem rm notes/1
  pwos mem ls notes/ --raw | xargs -d '\n' -n 1 pwos mem rm`,
	}, schema.MemoryDelete.Type, in, "key")
	a.AgentFlag(cmd, in, "pid", "as", asHelp)
	return cmd
}

func newMemSet(a *app) *cobra.Command {
	in := new(schema.MemorySetInput)
	var p cli.Payload
	cmd := &cobra.Command{
		Use:   "set KEY VALUE|-",
		Short: "store a value under a key",
		Long: `set stores a value under a key, in place of the one before. When it returns, the value
is on disk.

` + cli.PayloadHelp + `

Exit status: 3 denied, or the key is read-only.`,
		Example: `  pwos mem set notes/1 'remember the milk'
  pwos mem set settings '{"depth": 3}'
  pwos mem set version 1.10 --string
  pwos mem set page - < page.html`,
		Args: cli.Arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				value, err := a.Value(ctx, cmd, p, args[1])
				if err != nil {
					return err
				}
				in.Key = args[0]
				whole, err := cli.WithRaw(in, "value", value)
				if err != nil {
					return err
				}
				data, err := cli.Invoke(ctx, c, schema.MemorySet.Type, whole)
				if err != nil {
					return err
				}
				return a.PrintValue(data)
			})
		},
	}
	a.AgentFlag(cmd, in, "pid", "as", asHelp)
	p.Add(cmd)
	return cmd
}
