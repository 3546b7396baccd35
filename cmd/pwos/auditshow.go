package main

import (
	"context"
	"errors"
	"maps"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newAuditShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show SEQ",
		Short: "show one call whole",
		Long: `show prints all that the record has of one call: who made it and by which door, the
tokens that it was made on, its data without secrets, what came of it, its cause and what
it has caused, the approval or the rule that decided it, and the hashes and the signed
checkpoint that prove it. SEQ is the number of an entry, as "pwos audit log" prints it.

An agent is shown its own calls and its descendants'. Exit status: 3 the call is another
process's, 4 there is no such entry.`,
		Example: `  pwos audit show 34
  pwos audit show 34 --json | jq .proof`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := entryOf(cmd, args[0])
			if err != nil {
				return err
			}
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				shown, err := showCall(ctx, c, &schema.AuditShowInput{Seq: &seq})
				if err != nil {
					return err
				}
				if a.wantsJSON() {
					return a.printLine(shown.Raw)
				}
				if shown.Asked, err = questionOf(ctx, c, &shown); err != nil {
					return err
				}
				return a.printTable(shown.Table(shown.Names(), a.style))
			})
		},
	}
}

func newWhy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why SEQ|KEY",
		Short: "show the causes of a call, or of a value in memory",
		Long: `why prints the chain of causes of a call, or of the value that is now in memory under a
key: the call, the one that its message names as its cause or that sent the mail it had,
or that made the agent, and so on, to the operator or a start of the kernel. Below each
call is on whose authority it was made, and by which approval or against which rule.

What a message names as its cause is what its sender says. A number is an entry; a key of
digits alone is written with a slash, such as /7. An agent sees its own calls and its
descendants'. Exit status: 3 the call is another process's, or the value is not the
caller's to read, 4 there is no such entry or key.`,
		Example: `  pwos why 34
  pwos why notes/1
  pwos why notes/1 --json | jq '.chain[].entry.type'`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := &schema.AuditShowInput{Key: &args[0]}
			if seq, err := strconv.ParseInt(args[0], 10, 64); err == nil {
				if seq, err = entryOf(cmd, args[0]); err != nil {
					return err
				}
				in = &schema.AuditShowInput{Seq: &seq}
			}
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				return a.why(ctx, c, in)
			})
		},
	}
}

// entryOf is the number of an entry.
func entryOf(cmd *cobra.Command, text string) (int64, error) {
	seq, err := pidOf(text, 1)
	if err != nil {
		return 0, usage(cmd, err)
	}
	return seq, nil
}

// why prints the causes of a call. Of a key it asks for the value first: the gate says whether the caller may read it
// now, and the kernel whether it is there.
func (a *app) why(ctx context.Context, c *client.Client, in *schema.AuditShowInput) error {
	if in.Key != nil {
		if _, err := invokeAs(ctx, c, schema.MemoryGet, &schema.MemoryGetInput{Key: *in.Key}); err != nil {
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
	return a.printEither(causes.Line(), causes.Table(names, a.style))
}

// showCall asks for one call whole.
func showCall(ctx context.Context, c *client.Client, in *schema.AuditShowInput) (shown view.WholeCall, err error) {
	typ := schema.AuditShow.Type
	if shown.Raw, err = invoke(ctx, c, typ, in); err != nil {
		return shown, err
	}
	shown.AuditShowOutput, err = view.AnswerAs[schema.AuditShowOutput](typ, shown.Raw)
	return shown, err
}

// questionOf is the question that was asked before a call, as far as the kernel remembers it and the caller may see it.
func questionOf(ctx context.Context, c *client.Client, shown *view.WholeCall) (*schema.ApprovalState, error) {
	if shown.Approval == nil {
		return nil, nil
	}
	list, err := invokeAs(ctx, c, schema.ApprovalList, &schema.ApprovalListInput{})
	if errors.Is(err, fault.Forbidden) {
		return nil, nil
	}
	for i := range list.Approvals {
		if list.Approvals[i].ID == shown.Approval.Approval {
			return &list.Approvals[i], nil
		}
	}
	return nil, err
}
