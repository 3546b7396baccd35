package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// WithKernel connects to the kernel, starts one if none runs, and calls do with the connection. The time limit of all that is
// --timeout, or otherwise if --timeout was not given; 0 means no limit.
func (a *App) WithKernel(ctx context.Context, otherwise time.Duration, do func(context.Context, *client.Client) error) error {
	return a.With(ctx, otherwise, a.Dial, do)
}

// Asking returns the RunE function of a verb that needs only the kernel and its arguments.
func (a *App) Asking(do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.WithKernel(cmd.Context(), UsualTimeout, func(ctx context.Context, c *client.Client) error { return do(ctx, c, args) })
	}
}

// With is withKernel with another dial function.
func (a *App) With(
	ctx context.Context, otherwise time.Duration, dial func(context.Context) (*client.Client, error), do func(context.Context, *client.Client) error,
) (err error) {
	ctx, cancel := a.Bound(ctx, otherwise)
	defer cancel()
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	defer CloseInto(&err, c)
	if err := a.LookUp(ctx, c); err != nil {
		return err
	}
	return do(ctx, c)
}

// Invoke calls a syscall of the table and returns the data of its reply. input is a type of schema, or a schema.Value
// that is sent unchanged.
func Invoke(ctx context.Context, c *client.Client, typ string, input any) (schema.Value, error) {
	answer, err := Request(ctx, c, schema.Message{Type: typ}, input)
	return answer.Data, err
}

// Request is invoke for a message with metadata; it returns the whole reply.
func Request(ctx context.Context, c *client.Client, m schema.Message, input any) (schema.Message, error) {
	row, ok := schema.Lookup(m.Type)
	if !ok {
		return schema.Message{}, fmt.Errorf("call %s: this version of pwos does not know it", m.Type)
	}
	m.Kind = row.Kind
	if data, ok := input.(schema.Value); ok {
		m.Data = data
		return c.Do(ctx, m)
	}
	var err error
	if m.Data, err = schema.Marshal(input); err != nil {
		return schema.Message{}, fmt.Errorf("call %s: %w", m.Type, err)
	}
	return c.Do(ctx, m)
}

// InvokeAs is invoke with a typed input and a decoded reply.
func InvokeAs[In, Out any](ctx context.Context, c *client.Client, row schema.Callable[In, Out], in *In) (Out, error) {
	data, err := Invoke(ctx, c, row.Row().Type, in)
	if err != nil {
		return *new(Out), err
	}
	return view.AnswerAs[Out](row.Row().Type, data)
}

// Subscribe makes a call that starts a subscription, and calls each with every event until each returns an error. id is
// the id of the call.
func Subscribe[In, Out, Event any](
	ctx context.Context, a *App, row schema.Callable[In, Out], in *In, each func(id string, event schema.Message, data Event) error,
) error {
	return a.WithKernel(ctx, 0, func(ctx context.Context, c *client.Client) error { return SubscribeOn(ctx, c, row, in, each) })
}

// SubscribeOn is subscribe on an existing connection.
func SubscribeOn[In, Out, Event any](
	ctx context.Context, c *client.Client, row schema.Callable[In, Out], in *In, each func(id string, event schema.Message, data Event) error,
) error {
	data, err := row.Encode(in)
	if err != nil {
		return err
	}
	m := schema.Message{Kind: schema.KindCommand, Type: row.Row().Type, Data: data, Meta: schema.Metadata{ID: schema.NewStamper().NewID()}}
	return c.Subscribe(ctx, m, func(event schema.Message) error {
		data, err := view.AnswerAs[Event](event.Type, event.Data)
		if err != nil {
			return err
		}
		return each(m.Meta.ID, event, data)
	})
}

// ListPage is the number of elements that one request asks for, the kernel's maximum.
const ListPage = 1000

// ErrEnough ends a loop early and is not returned to its caller.
var ErrEnough = errors.New("limit is reached")

// Pages requests the pages of a list until its end, or until it has most elements; nil means all.
func Pages(most *int64, page func(limit int64) (got int, more bool, err error)) error {
	left := int64(math.MaxInt64)
	if most != nil {
		left = *most
	}
	for left > 0 {
		got, more, err := page(min(ListPage, left))
		switch {
		case errors.Is(err, ErrEnough):
			return nil
		case err != nil || !more:
			return err
		}
		left -= int64(got)
	}
	return nil
}

// Group returns a command that has only subcommands.
func Group(use, short, long, example string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usage(cmd, UnknownCommand(cmd, args[0]))
			}
			return Usage(cmd, fmt.Errorf("%s needs a verb", cmd.CommandPath()))
		},
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// UnknownCommand returns an error that suggests the most similar subcommand, if there is one.
func UnknownCommand(cmd *cobra.Command, name string) error {
	like := schema.Nearest(name, func(yield func(string) bool) {
		for _, below := range cmd.Commands() {
			if (below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand()) && !yield(below.Name()) {
				return
			}
		}
	})
	if like != "" {
		return fmt.Errorf("unknown command %q; did you mean %q?", name, like)
	}
	return fmt.Errorf("unknown command %q", name)
}

// SubVerb returns a usage error for an unknown subcommand of a verb that also runs without one.
func SubVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(cmd, UnknownCommand(cmd, args[0]))
	}
	return nil
}
