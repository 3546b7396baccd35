package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

func newMemSet(a *app) *cobra.Command {
	var as numberFlag
	var p payload
	cmd := &cobra.Command{
		Use:   "set KEY VALUE|-",
		Short: "store a value under a key",
		Long: `set stores a value under a key, in place of the one before. When it returns, the value
is on disk.

` + payloadHelp + `

Exit status: 3 denied, or the key is read-only.`,
		Example: `  pwos mem set notes/1 'remember the milk'
  pwos mem set settings '{"depth": 3}'
  pwos mem set version 1.10 --string
  pwos mem set page - < page.html`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := as.given(cmd, "as", 0)
			if err != nil {
				return usage(cmd, err)
			}
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				value, err := a.value(ctx, cmd, p, args[1])
				if err != nil {
					return err
				}
				data, err := invoke(ctx, c, schema.MemorySet.Type, memSetData(args[0], value, pid))
				if err != nil {
					return err
				}
				return a.printValue(data)
			})
		},
	}
	as.add(cmd, "as", asHelp)
	p.add(cmd)
	return cmd
}

// memSetData is the data of Memory.Set. The value is to be stored byte for byte, so it is not marshalled with the rest.
func memSetData(key string, value schema.Value, pid *int64) schema.Value {
	o := object(nil).text("key", key).raw("value", value)
	if pid != nil {
		o = o.integer("pid", *pid)
	}
	return o.close()
}
