package client

import (
	"context"

	"github.com/promptware-os/pwos/schema"
)

// Call calls a syscall by its row and returns the data of the reply: Call(ctx, c, schema.MemoryList, &schema.MemoryListInput{}).
// Its errors are those of [Client.Do], and that of a reply which does not have the row's form.
func Call[In, Out any](ctx context.Context, c *Client, row schema.Callable[In, Out], in *In) (*Out, error) {
	data, err := row.Encode(in)
	if err != nil {
		return nil, err
	}
	answer, err := c.Call(ctx, row.Row().Kind, row.Row().Type, data)
	if err != nil {
		return nil, err
	}
	return row.Decode(answer.Data)
}
