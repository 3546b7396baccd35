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

// StreamConfig returns the configuration of a kernel's stream. It does not allow direct reads: their answer is the message as it was
// stored, and a member could have it sent to the stream of another kernel.
func StreamConfig(kernel string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: Stream(kernel), Subjects: []string{JournalSubject(kernel)},
		Description: "journal of the pwos kernel " + kernel,
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		Replicas: replicas, DenyDelete: true, DenyPurge: true,
		MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, Duplicates: time.Second,
	}
}

// LeaseConfig returns the configuration of the stream of a kernel's lease: a key-value bucket that does not allow direct reads either.
func LeaseConfig(kernel string, replicas int) jetstream.StreamConfig {
	bucket := LeaseBucket(kernel)
	return jetstream.StreamConfig{
		Name: "KV_" + bucket, Subjects: []string{"$KV." + bucket + ".>"},
		Description: "which host leads the pwos kernel " + kernel,
		Discard:     jetstream.DiscardNew, Storage: jetstream.FileStorage,
		Replicas: replicas, MaxMsgsPerSubject: 1, AllowRollup: true, DenyDelete: true,
		MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, Duplicates: time.Second,
	}
}

// Make creates what a kernel requests at a MakeSubject: its stream, or the bucket of its lease, with the same settings for all kernels.
// replicas is the text of the request. A stream that exists is not changed.
func Make(ctx context.Context, js jetstream.JetStream, what, kernel string, replicas []byte) error {
	n, err := strconv.Atoi(string(replicas))
	if err != nil || n < 1 || n > maxReplicas {
		return fmt.Errorf("make %s of the kernel %s: %q is no number of replicas", what, kernel, fault.Clip(string(replicas)))
	}
	switch what {
	case makeStream:
		_, err = js.CreateStream(ctx, StreamConfig(kernel, n))
	case makeLease:
		_, err = js.CreateStream(ctx, LeaseConfig(kernel, n))
	default:
		return fmt.Errorf("make %q: unknown", fault.Clip(what))
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // with other settings, or asked for twice
		return nil
	}
	if err != nil {
		return fmt.Errorf("make %s of the kernel %s: %w", what, kernel, err)
	}
	return nil
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
