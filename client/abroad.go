package client

import (
	"context"
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// askThrough makes a query at the kernel of the options, through the one that the client is connected to (Cluster.Ask). Its
// answer looks like one of a connection to that kernel.
func (c *Client) askThrough(ctx context.Context, m schema.Message) (schema.Message, error) {
	if m.Kind != schema.KindQuery {
		return schema.Message{}, AsAnswered(fault.ClusterNotAsked.New("%s changes something: another kernel answers queries", m.Type).
			WithFix("make the call at the kernel %s", c.kernel))
	}
	in := &schema.ClusterAskInput{Kernel: c.kernel, Type: m.Type, Data: m.Data}
	data, err := schema.ClusterAsk.Encode(in)
	if err != nil {
		return schema.Message{}, err
	}
	answer, err := c.exchange(ctx, schema.Message{Kind: schema.KindQuery, Type: schema.ClusterAsk.Type, Data: data, Meta: m.Meta}, nil)
	if err != nil {
		return schema.Message{}, err
	}
	out, err := schema.ClusterAsk.Decode(answer.Data)
	if err != nil {
		return schema.Message{}, fmt.Errorf("ask the kernel %s: %w", c.kernel, err)
	}
	answer.Type, answer.Data = m.Type, out.Data
	answer.Meta.Kernel = `{"seq":` + strconv.FormatInt(out.Seq, 10) + `}`
	return answer, nil
}
