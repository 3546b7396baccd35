package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newWhy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why SEQ|KEY",
		Short: "show the causes of a call, or of a value in memory",
		Long: `why prints the chain of causes of a call, or of the value that memory now has under a
key: the call, then the call that its message names as its cause, or that sent the mail
it read, or that spawned the agent, up to the operator or a start of the kernel. Below
each call are the authority for it, and the approval or the rule that decided it.

The cause in a message is a claim of its sender. A number is an entry, which may be
written #34. A key that is also a path here is key:notes/1, and a key of digits alone key:7. An agent sees its own calls and its
descendants'. Exit status: 3 the call is of another process, or the caller must not
read the value, 4 no such entry or key.`,
		Example: `  pwos why 34
  pwos why notes/1
  pwos why notes/1 --json | jq '.chain[].entry.type'`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, err := arg.ParseSubject(args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				in, err := whySubject(ctx, c, cmd, subject)
				if err != nil {
					return err
				}
				return a.why(ctx, c, in)
			})
		},
	}
}

// whySubject returns what the causes are asked of: the key or the file, where the text may be one of both.
func whySubject(ctx context.Context, c *client.Client, cmd *cobra.Command, subject arg.Subject) (*schema.AuditShowInput, error) {
	if subject.Key != "" && subject.File != "" {
		_, err := os.Lstat(subject.File)
		isKey, isFile := true, err == nil
		if isFile || subject.Step { // else it can be nothing but a key, and its error is that of a missing one
			_, err := cli.InvokeAs(ctx, c, schema.MemoryGet, &schema.MemoryGetInput{Key: subject.Key})
			isKey = !errors.Is(err, fault.MemoryNotFound)
		}
		if subject, err = subject.Which(isKey, isFile); err != nil {
			return nil, cli.Usage(cmd, err)
		}
	}
	switch {
	case subject.File != "":
		return nil, cli.Usage(cmd, fmt.Errorf("%q is a file: %s shows what an agent changed in it; %s is a key", subject.File,
			quote.Command("pwos", "diff", "AGENT", subject.File), quote.Word("key:"+subject.File)))
	case subject.Seq != 0:
		return &schema.AuditShowInput{Seq: &subject.Seq}, nil
	}
	return &schema.AuditShowInput{Key: &subject.Key}, nil
}

// why prints the causes of a call. For a key it reads the value first, so that a caller without the right, or with a
// missing key, gets the error of Memory.Get.
func (a *app) why(ctx context.Context, c *client.Client, in *schema.AuditShowInput) error {
	if in.Key != nil {
		if _, err := cli.InvokeAs(ctx, c, schema.MemoryGet, &schema.MemoryGetInput{Key: *in.Key}); err != nil {
			return err
		}
	}
	in.Effects = new(false)
	causes, names := new(view.Causes), make(view.Names)
	for {
		shown, err := showCall(ctx, c, in)
		if err != nil {
			return err
		}
		maps.Copy(names, shown.Names())
		next := causes.Add(shown)
		if next == 0 {
			break
		}
		in = &schema.AuditShowInput{Seq: &next, Effects: in.Effects}
	}
	return a.PrintEither(causes.Line(), causes.Table(names, a.Style))
}
