package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// Lead sends the rest of a journal without a writer to the stream of its kernel, which makes this host the leader. It is
// the fence: the first message names the stream's last message as this journal knows it, and the bus refuses all later
// appends of the previous leader. Lead fails with fault.ClusterFenced if the previous leader has appended entries that this
// journal does not have.
func Lead(ctx context.Context, name string, signer journal.Signer, source Source, replicas int, conn *nats.Conn) error {
	c, err := NewCopy(name, signer, source, replicas, conn, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	c.quorum = true
	for {
		err := c.lead(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errDiverged):
			return fault.ClusterFenced.New("the host that leads the kernel %s has appended entries meanwhile: nothing was taken over; run the command again", name).Wrap(err)
		case !sleep(ctx, minPause):
			return busFault("take over the kernel "+name, err)
		}
	}
}

// lead sends what the stream does not have. A message without an acknowledgment may have arrived; the next attempt finds
// out.
func (c *Copy) lead(ctx context.Context) (err error) {
	at, err := c.align(ctx)
	if err != nil || at.Seq == c.source.Last() {
		return err
	}
	r := c.read(at.Seq + 1)
	defer func() { err = errors.Join(err, r.Close()) }()
	_, _, err = c.catchUp(ctx, r, at.last)
	return err
}

// LastKey returns the key that signed the end of a kernel's stream, as a line of authorized_keys; "" if there is no stream,
// or its end is not signed.
func LastKey(ctx context.Context, js jetstream.JetStream, kernel string) (string, error) {
	last, err := LastCheckpoint(ctx, js, kernel)
	if last == nil || err != nil {
		return "", err
	}
	return last.Key, nil
}

// LastCheckpoint returns the signed checkpoint at the end of a kernel's stream; nil if there is no stream, or its end is
// not signed.
func LastCheckpoint(ctx context.Context, js jetstream.JetStream, kernel string) (*journal.Checkpoint, error) {
	stream, err := js.Stream(ctx, Stream(kernel))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, busFault("open stream", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, busFault("look at stream", err)
	}
	for seq := info.State.LastSeq; seq > 0; seq-- {
		m, ours, err := readMessage(ctx, stream, seq)
		if err != nil {
			return nil, busFault(fmt.Sprintf("read message %d", seq), err)
		}
		if part, of, ok := partOf(m.Header.Get(partHeader)); !ours || ok && part < of {
			continue
		}
		checkpoint, err := journal.ParseCheckpoint([]byte(m.Header.Get(checkpointHeader)))
		if err != nil || checkpoint.Verify() != nil {
			return nil, nil
		}
		return &checkpoint, nil
	}
	return nil, nil
}
