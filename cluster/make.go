package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/schema/fault"
)

// maxReplicas is how many nodes may have a stream.
const maxReplicas = 5

// MaxMessage is the maximum size of a message in bytes, and maxLease that of a lease. The bus does not apply its own limit to answers of
// JetStream, which a member may have sent to a stream.
const (
	MaxMessage = 1 << 20
	maxLease   = 1 << 10
)

// StreamConfig returns the configuration of a kernel's stream. It does not allow direct reads: their answer is the message as it was
// stored, and a member could have it sent to the stream of another kernel.
func StreamConfig(kernel string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: Stream(kernel), Subjects: []string{JournalSubject(kernel)},
		Description: "journal of the pwos kernel " + kernel,
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		Replicas: replicas, DenyDelete: true, DenyPurge: true,
		MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: MaxMessage, Duplicates: time.Second,
	}
}

// LeaseConfig returns the configuration of the stream of a kernel's lease: a key-value bucket that does not allow direct reads either.
func LeaseConfig(kernel string, replicas int) jetstream.StreamConfig {
	bucket := LeaseBucket(kernel)
	return jetstream.StreamConfig{
		Name: "KV_" + bucket, Subjects: []string{LeaseSubject(kernel)},
		Description: "which host leads the pwos kernel " + kernel,
		Discard:     jetstream.DiscardNew, Storage: jetstream.FileStorage,
		Replicas: replicas, MaxMsgsPerSubject: 1, AllowRollup: true, DenyDelete: true,
		MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: maxLease, Duplicates: time.Second,
	}
}

// streamOf returns the configuration of what a kernel requests at a MakeSubject.
func streamOf(what, kernel string, replicas int) (c jetstream.StreamConfig, err error) {
	switch what {
	case makeStream:
		return StreamConfig(kernel, replicas), nil
	case makeLease:
		return LeaseConfig(kernel, replicas), nil
	}
	return c, fmt.Errorf("make %q: unknown", fault.Clip(what))
}

// Make creates what a kernel requests at a MakeSubject: its stream, or the bucket of its lease, with the same settings for all kernels.
// replicas is the text of the request. One that exists keeps its replicas, and gets the other settings.
func Make(ctx context.Context, js jetstream.JetStream, what, kernel string, replicas []byte) error {
	n, err := strconv.Atoi(string(replicas))
	if err != nil || n < 1 || n > maxReplicas {
		return fmt.Errorf("make %s of the kernel %s: %q is no number of replicas", what, kernel, fault.Clip(string(replicas)))
	}
	c, err := streamOf(what, kernel, n)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, c)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		err = update(ctx, js, c)
	}
	if err != nil {
		return fmt.Errorf("make %s of the kernel %s: %w", what, kernel, err)
	}
	return nil
}

func update(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) error {
	stream, err := js.Stream(ctx, c.Name)
	if err != nil {
		return err
	}
	c.Replicas = stream.CachedInfo().Config.Replicas
	_, err = js.UpdateStream(ctx, c)
	return err
}

// openStream opens the stream of a kernel, or of its lease. It has the bus make one that is missing, and change one that an earlier build
// made with other settings.
func openStream(ctx context.Context, js jetstream.JetStream, what, kernel string, replicas int) (jetstream.Stream, error) {
	c, err := streamOf(what, kernel, replicas)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, c.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
	case err != nil:
		return nil, err
	case stream.CachedInfo().Config.MaxMsgSize == c.MaxMsgSize && !stream.CachedInfo().Config.AllowDirect:
		return stream, nil
	}
	asked := AskToMake(ctx, js, what, kernel, replicas)
	if stream, err = js.Stream(ctx, c.Name); err != nil {
		return nil, errors.Join(asked, err)
	}
	if stream.CachedInfo().Config.AllowDirect {
		return nil, fault.ClusterBus.New("the stream %s allows direct reads, whose answers a member could have sent to the stream of another kernel: switch allow_direct off (%v)", c.Name, asked)
	}
	return stream, nil
}

// AskToMake requests the stream of a kernel, or the bucket of its lease, from the bus. If nothing answers, as on an existing NATS
// server, it creates it itself.
func AskToMake(ctx context.Context, js jetstream.JetStream, what, kernel string, replicas int) error {
	text := []byte(strconv.Itoa(replicas))
	ctx, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	reply, err := js.Conn().RequestWithContext(ctx, MakeSubject(what, kernel), text)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return Make(ctx, js, what, kernel, text)
	case err != nil:
		return fmt.Errorf("have the bus make the %s of the kernel %s: %w", what, kernel, err)
	case len(reply.Data) > 0:
		return errors.New("the bus answers: " + fault.Clip(string(reply.Data)))
	}
	return nil
}

// makeTime is the time limit of the request.
const makeTime = 5 * time.Second
