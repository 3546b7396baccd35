package main

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

// withKernel connects to the kernel, starts one if none runs, and calls do with the connection. The time limit of all that is
// --timeout, or otherwise if --timeout was not given; 0 means no limit.
func (a *app) withKernel(ctx context.Context, otherwise time.Duration, do func(context.Context, *client.Client) error) error {
	return a.with(ctx, otherwise, a.dial, do)
}

// asking returns the RunE function of a verb that needs only the kernel and its arguments.
func (a *app) asking(do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error { return do(ctx, c, args) })
	}
}

// with is withKernel with another dial function.
func (a *app) with(
	ctx context.Context, otherwise time.Duration, dial func(context.Context) (*client.Client, error), do func(context.Context, *client.Client) error,
) (err error) {
	ctx, cancel := a.bound(ctx, otherwise)
	defer cancel()
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	return do(ctx, c)
}

// invoke calls a syscall of the table and returns the data of its reply. input is a type of schema, or a schema.Value
// that is sent unchanged.
func invoke(ctx context.Context, c *client.Client, typ string, input any) (schema.Value, error) {
	answer, err := request(ctx, c, schema.Message{Type: typ}, input)
	return answer.Data, err
}

// request is invoke for a message with metadata; it returns the whole reply.
func request(ctx context.Context, c *client.Client, m schema.Message, input any) (schema.Message, error) {
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

// invokeAs is invoke with a typed input and a decoded reply.
func invokeAs[In, Out any](ctx context.Context, c *client.Client, row schema.Callable[In, Out], in *In) (Out, error) {
	data, err := invoke(ctx, c, row.Row().Type, in)
	if err != nil {
		return *new(Out), err
	}
	return view.AnswerAs[Out](row.Row().Type, data)
}

// subscribe makes a call that starts a subscription, and calls each with every event until each returns an error. id is
// the id of the call.
func subscribe[In, Out, Event any](
	ctx context.Context, a *app, row schema.Callable[In, Out], in *In, each func(id string, event schema.Message, data Event) error,
) error {
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error { return subscribeOn(ctx, c, row, in, each) })
}

// subscribeOn is subscribe on an existing connection.
func subscribeOn[In, Out, Event any](
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

// listPage is the number of elements that one request asks for, the kernel's maximum.
const listPage = 1000

// errEnough ends a loop early and is not returned to its caller.
var errEnough = errors.New("limit is reached")

// pages requests the pages of a list until its end, or until it has most elements; nil means all.
func pages(most *int64, page func(limit int64) (got int, more bool, err error)) error {
	left := int64(math.MaxInt64)
	if most != nil {
		left = *most
	}
	for left > 0 {
		got, more, err := page(min(listPage, left))
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err != nil || !more:
			return err
		}
		left -= int64(got)
	}
	return nil
}

// group returns a command that has only subcommands.
func group(use, short, long, example string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(cmd, unknownCommand(cmd, args[0]))
			}
			return usage(cmd, fmt.Errorf("%s needs a verb", cmd.CommandPath()))
		},
	}
	cmd.AddCommand(verbs...)
	return cmd
}
