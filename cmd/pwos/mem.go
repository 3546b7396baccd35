package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

func newMem(a *app) *cobra.Command {
	return group("mem", "read and write the kernel's key-value memory",
		`mem is about the kernel's memory: JSON values under keys such as notes/1. Each origin
has its own. What lies under proc/ is made by the kernel, vault/ takes sealed values
only. A leading slash makes no difference.`,
		`  pwos mem set notes/1 hello
  pwos mem get notes/1
  pwos mem ls notes/
  pwos mem rm notes/1`,
		newMemGet(a), newMemSet(a), newMemLs(a), newMemRm(a))
}

// asHelp is the flag --as of the verbs that act for a process.
const asHelp = "process to act as (default 0, the operator)"

func newMemGet(a *app) *cobra.Command {
	var as numberFlag
	var raw bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "print the value under a key",
		Long: `get prints the value under a key: as JSON, byte for byte as it was stored, where
stdout is no terminal. --raw prints a string without its quotes there too.

Exit status: 3 denied, 4 there is no such key.`,
		Example: `  pwos mem get notes/1
  pwos mem get notes/1 --raw > note.txt
  pwos mem get proc/7/status
  pwos mem get notes/1 --as 7`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := &schema.MemoryGetInput{Key: args[0]}
			var err error
			if in.PID, err = as.given(cmd, "as", 0); err != nil {
				return usage(cmd, err)
			}
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				data, err := invoke(ctx, c, schema.MemoryGet.Type, in)
				if err != nil {
					return err
				}
				if text, ok := textOf(data); ok && raw {
					return a.printText(text)
				}
				return a.printValue(data)
			})
		},
	}
	as.add(cmd, "as", asHelp)
	cmd.Flags().BoolVar(&raw, "raw", false, "print a string as it is")
	return cmd
}

// printText writes a line of text that somebody asked for as it is.
func (a *app) printText(text string) error {
	if _, err := fmt.Fprintln(a.stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
