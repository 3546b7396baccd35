package main

import (
	"context"
	"errors"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// noMessage is a number that no message ever has.
const noMessage = 1<<53 - 1

// recvFollow prints what comes into a mailbox, without end. It receives rather than subscribes: a mailbox has one subscriber,
// which may be the process itself, and a subscription cannot select. What has been printed it acknowledges, what has not is
// delivered again when the connection ends.
func (a *app) recvFollow(ctx context.Context, in *schema.ReceiveInput) error {
	keep := true
	in.Ack = &keep
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		// A process that may not acknowledge is refused before it is shown anything, or it would be shown it again and again.
		if err := acknowledge(ctx, c, in, []int64{noMessage}); err != nil {
			return err
		}
		out, ended := mailFeed(a), false
		for {
			messages, err := receive(ctx, c, in)
			var printed []int64
			var unprinted error
			if err == nil {
				printed, unprinted = out.messages(messages)
			}
			if len(printed) > 0 {
				err = acknowledge(ctx, c, in, printed)
			}
			if kernelCode(err) == 410 {
				err = nil // the process has ended, and nothing comes any more
				ended = true
			}
			if err := errors.Join(unprinted, err); err != nil || ended {
				return err
			}
		}
	})
}

// acknowledge says that messages have been dealt with. An interruption does not come between them and that.
func acknowledge(ctx context.Context, c *client.Client, in *schema.ReceiveInput, ids []int64) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), usualTimeout, errTimeout)
	defer cancel()
	_, err := invoke(ctx, c, schema.IPCAck.Type, &schema.MailAckInput{Target: in.Target, MsgIDs: ids})
	return err
}
