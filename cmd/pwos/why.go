package main

import (
	"context"
	"errors"
	"maps"
	"os"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newWhy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why SEQ|KEY|FILE",
		Short: "show the causes of a call, of a value in memory, or of what a file has",
		Long: `why prints the chain of causes of a call, or of the value that memory now has under a
key: the call, then the call that its message names as its cause, or that sent the mail
it read, or that spawned the agent, up to the operator or a start of the kernel. Below
each call are the authority for it, and the approval or the rule that decided it.

Of a call that a tool call of an agent's host made, such as a connection of a program that it
started, the chain leads to that tool call and to the prompt behind it.

Of a file it names the step that last changed it, with the prompt that led there as far as
the agent's host has told it, and the causes of the call that began the step. The file may
be gone: one that an agent has removed is looked for too. A directory stands for what is in it.

The cause in a message is a claim of its sender. A number is an entry, which may be
written #34. A key that is also a path here is key:notes/1, the path then file:notes/1, and a key
of digits alone key:7. An agent sees its own calls and its descendants'. Exit status: 3 the call is of another process, or the caller must not
read the value, 4 no such entry or key.`,
		Example: `  pwos why 34
  pwos why notes/1
  pwos why src/cart.ts
  pwos why notes/1 --json | jq '.chain[].entry.type'`,
		Args:              cli.Arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: completeSteps(a, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, err := arg.ParseSubject(args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				in, file, err := whySubject(ctx, c, cmd, subject)
				switch {
				case err != nil:
					return err
				case file != "":
					return a.whyFile(ctx, c, file)
				}
				return a.why(ctx, c, in)
			})
		},
	}
}

// whySubject returns what the causes are asked of, a key or an entry; or the absolute path of a file.
func whySubject(ctx context.Context, c *client.Client, cmd *cobra.Command, subject arg.Subject) (_ *schema.AuditShowInput, file string, err error) {
	if subject.Key != "" && subject.File != "" {
		path, pathErr := realPath(subject.File)
		_, err := os.Lstat(path)
		isKey, isFile := true, pathErr == nil && err == nil
		if isFile || subject.Step || path != "" { // else it can be nothing but a key, and its error is that of a missing one
			_, err := cli.InvokeAs(ctx, c, schema.MemoryGet, &schema.MemoryGetInput{Key: subject.Key})
			isKey = !errors.Is(err, fault.MemoryNotFound)
		}
		if !isKey && !isFile && path != "" { // an agent may have removed it
			if _, err := lastChange(ctx, c, path); err == nil {
				isFile = true
			}
		}
		if subject, err = subject.Which(isKey, isFile); err != nil {
			return nil, "", cli.Usage(cmd, err)
		}
	}
	switch {
	case subject.File != "":
		file, err = realPath(subject.File)
		return nil, file, err
	case subject.Seq != 0:
		return &schema.AuditShowInput{Seq: &subject.Seq}, "", nil
	}
	return &schema.AuditShowInput{Key: &subject.Key}, "", nil
}

// lastChange returns the step that last changed a path or something below it.
func lastChange(ctx context.Context, c *client.Client, path string) (*schema.StepState, error) {
	list, err := cli.InvokeAs(ctx, c, schema.StepList, &schema.StepListInput{Path: &path})
	if err != nil {
		return nil, err
	}
	if len(list.Steps) == 0 {
		return nil, fault.StepsNotFound.New("no step that is kept changed %s", path).WithFix(`"pwos steps" lists the steps, and of which directories they are kept`)
	}
	return &list.Steps[0], nil
}

// whyFile prints the step that last changed a file, the prompt that led to it, and the causes of the call that began it.
func (a *app) whyFile(ctx context.Context, c *client.Client, path string) error {
	last, err := lastChange(ctx, c, path)
	if err != nil {
		return err
	}
	got, err := cli.InvokeAs(ctx, c, schema.StepGet, &schema.StepGetInput{Agent: last.Agent, Step: last.Step})
	if err != nil {
		return err
	}
	causes, names := new(view.Causes), make(view.Names)
	if last.Cause != 0 {
		if causes, names, err = causesOf(ctx, c, &schema.AuditShowInput{Seq: &last.Cause}); err != nil {
			return err
		}
	}
	step, err := schema.Marshal(last)
	if err != nil {
		return err
	}
	line := view.Object(nil).Text("path", path).Raw("step", step)
	if got.Prompt != nil {
		line = line.Text("prompt", *got.Prompt)
	}
	if len(causes.Calls) > 0 {
		line = line.Raw("causes", causes.Line())
	}
	if err := a.PrintEither(line.Close(), view.StepOfFile(path, &view.Step{StepState: *last}, got.Prompt, a.Style)); err != nil || len(causes.Calls) == 0 || a.WantsJSON() {
		return err
	}
	return errors.Join(a.PrintLine(nil), a.PrintTable(causes.Table(names, a.Style)))
}

// why prints the causes of a call. For a key it reads the value first, so that a caller without the right, or with a
// missing key, gets the error of Memory.Get.
func (a *app) why(ctx context.Context, c *client.Client, in *schema.AuditShowInput) error {
	if in.Key != nil {
		if _, err := cli.InvokeAs(ctx, c, schema.MemoryGet, &schema.MemoryGetInput{Key: *in.Key}); err != nil {
			return err
		}
	}
	causes, names, err := causesOf(ctx, c, in)
	if err != nil {
		return err
	}
	if causes.Prompt, err = promptOf(ctx, c, causes.Step()); err != nil {
		return err
	}
	return a.PrintEither(causes.Line(), causes.Table(names, a.Style))
}

// promptOf returns the prompt that led to a step, nil if it is not known, or not to this caller.
func promptOf(ctx context.Context, c *client.Client, began *schema.StepBeginOutput) (*string, error) {
	if began == nil {
		return nil, nil
	}
	got, err := cli.InvokeAs(ctx, c, schema.StepGet, &schema.StepGetInput{Agent: began.Agent, Step: began.Step})
	if errors.Is(err, fault.StepsNotFound) || errors.Is(err, fault.CapabilityDenied) { // it has not ended, or is not kept any more
		return nil, nil
	}
	return got.Prompt, err
}

// causesOf returns the causes of a call, and the names of the processes in them.
func causesOf(ctx context.Context, c *client.Client, in *schema.AuditShowInput) (*view.Causes, view.Names, error) {
	in.Effects = new(false)
	causes, names := new(view.Causes), make(view.Names)
	for {
		shown, err := showCall(ctx, c, in)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(names, shown.Names())
		next := causes.Add(shown)
		if next == 0 {
			return causes, names, nil
		}
		in = &schema.AuditShowInput{Seq: &next, Effects: in.Effects}
	}
}
