package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// listPage is how many keys or entries are asked for at once: the most that the kernel gives.
const listPage = 1000

// memLsFlags are the flags of `pwos mem ls`.
type memLsFlags struct {
	as, limit numberFlag
	raw       bool
}

func newMemLs(a *app) *cobra.Command {
	var f memLsFlags
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "list keys, one a line",
		Long: `ls lists all keys that begin with PREFIX, in ascending order, one a line, each with a
leading slash. Where stdout is no terminal each line is a JSON string; --raw leaves
out the quotes there too: a key has no line ends. No key: nothing is printed.

It asks for page after page: keys that come or go meanwhile may be missed or not. Keys
under proc/ come only where PREFIX begins with that.`,
		Example: `  pwos mem ls
  pwos mem ls notes/ --limit 10
  pwos mem ls proc/
  pwos mem ls --raw | grep -c '^/notes/'`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var in schema.MemoryListInput
			if len(args) == 1 {
				in.Prefix = &args[0]
			}
			var err error
			if in.PID, err = f.as.given(cmd, "as", 0); err != nil {
				return usage(cmd, err)
			}
			if in.Limit, err = f.limit.given(cmd, "limit", 1); err != nil {
				return usage(cmd, err)
			}
			return a.memLs(cmd.Context(), in, f.raw)
		},
	}
	f.as.add(cmd, "as", asHelp)
	f.limit.add(cmd, "limit", "most keys to list (default: all)")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print keys as they are")
	return cmd
}

// memLs follows the pages of a list until it ends, or until in.Limit keys were listed.
func (a *app) memLs(ctx context.Context, in schema.MemoryListInput, raw bool) error {
	left := int64(-1) // no limit
	if in.Limit != nil {
		left = *in.Limit
	}
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		for left != 0 {
			page := int64(listPage)
			if left > 0 {
				page = min(page, left)
			}
			in.Limit = &page
			out, err := invokeAs(ctx, c, schema.MemoryList, &in)
			if err != nil {
				return err
			}
			for _, key := range out.Keys {
				if err := a.printKey(key, raw); err != nil {
					return err
				}
			}
			if left > 0 {
				left -= int64(len(out.Keys))
			}
			if out.Next == "" {
				return nil
			}
			in.Cursor = &out.Next
		}
		return nil
	})
}

func (a *app) printKey(key string, raw bool) error {
	switch {
	case raw:
		return a.printText(key)
	case a.wantsJSON():
		return a.printLine(schema.AppendString(nil, key))
	}
	return a.printText(escaped(key))
}
