package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sdk"
)

func newSDK(a *app) *cobra.Command {
	var registered bool
	cmd := &cobra.Command{
		Use:   "sdk LANGUAGE",
		Short: "print a client for programs in Python or TypeScript",
		Long: `sdk prints one file without dependencies, for Python 3.9 or Node 22 and later. It has the
connection to the kernel, and a typed method for each syscall. The same kernel prints the
same bytes. The file knows the syscalls that it was made from, and warns if it connects to
a kernel that has others.

With --registered it includes the syscalls that were registered at run time.`,
		Example: `  pwos sdk python >pwos.py
  pwos sdk typescript >pwos.ts`,
		Args:      cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: sdk.Languages(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				return a.sdk(ctx, c, args[0], registered)
			})
		},
	}
	cmd.Flags().BoolVar(&registered, "registered", false, "include the syscalls that were registered at run time")
	return cmd
}

func (a *app) sdk(ctx context.Context, c *client.Client, language string, registered bool) error {
	list, err := client.Call(ctx, c, schema.SyscallList, &schema.ListInput{})
	if err != nil {
		return err
	}
	k := sdk.Kernel{Schemas: list.Schemas}
	for _, typ := range list.Syscalls {
		if schema.Registrable(typ) && !registered {
			continue
		}
		described, err := client.Call(ctx, c, schema.SyscallDescribe, &schema.DescribeInput{Name: typ})
		if err != nil {
			return err
		}
		k.Syscalls = append(k.Syscalls, *described)
	}
	return sdk.Write(a.Stdout, language, k)
}
