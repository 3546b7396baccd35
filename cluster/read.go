package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// Report is the result of reading a stream.
type Report struct {
	Kernel   string
	Messages uint64
	Entries  uint64
	Bytes    int64
	Head     journal.Head         // the last entry
	Vouched  uint64               // the last entry that a signature by one of the given keys covers
	Finding  *journal.DamageError // the first place that differs from what the kernel wrote; nil: none
}

// Sink receives what was checked: each line of the journal without its '
// ', and after the last line of a message the checkpoint of that message.
type Sink interface {
	Line(record *journal.Record) error
	Checkpoint(journal.Checkpoint) error
}

// Verify reads the stream of a kernel from its beginning, and passes what is correct to sink, unless sink is nil. It needs
// only the public keys of the hosts that may lead the kernel. Reading ends at the first fault, which is in the report; the
// error is one that prevents reading, or of the sink.
func Verify(ctx context.Context, js jetstream.JetStream, kernel string, keys []access.PublicKey, sink Sink) (*Report, error) {
	stream, err := js.Stream(ctx, Stream(kernel))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fault.ClusterNoStream.New("the bus has no journal of a kernel %q: pwos cluster status names the members", kernel).With("kernel", kernel)
	}
	if err != nil {
		return nil, busFault("open stream", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, busFault("look at stream", err)
	}
	v := &verifying{report: Report{Kernel: kernel}, leaders: newLeaders(keys, nil), sink: sink}
	for seq := uint64(1); seq <= info.State.LastSeq && v.report.Finding == nil; seq++ {
		m, ours, err := readMessage(ctx, stream, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			v.find(seq, "the message was removed from the stream")
			break
		}
		if err != nil {
			return nil, busFault(fmt.Sprintf("read message %d", seq), err)
		}
		if !ours {
			continue
		}
		v.report.Messages++
		v.report.Bytes += int64(len(m.Data))
		group, reason := v.assembly.add(m.Header, m.Data)
		if group != nil {
			reason, err = v.group(group)
		}
		if err != nil {
			return nil, err
		}
		if reason != "" {
			v.find(seq, reason)
		}
	}
	v.report.Vouched = v.leaders.vouched
	if reason := v.leaders.end(v.chain.Head.Seq); v.report.Finding == nil && reason != "" {
		v.find(info.State.LastSeq, reason)
	}
	if v.report.Finding == nil && v.report.Vouched < v.chain.Head.Seq {
		v.find(info.State.LastSeq, fmt.Sprintf("entries %d to %d are not signed by a key of the kernel %s", v.report.Vouched+1, v.chain.Head.Seq, kernel))
	}
	v.report.Head = v.chain.Head
	return &v.report, nil
}

func busFault(what string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return fault.ClusterBus.New("%s: %v", what, err)
}

// verifying is the state of Verify.
type verifying struct {
	report   Report
	leaders  *leaders
	assembly assembly
	chain    journal.Chain
	sink     Sink
}

// group checks the next group.
func (v *verifying) group(g *received) (reason string, _ error) {
	for line := range bytes.Lines(g.lines) {
		record, reason := v.chain.Add(bytes.TrimSuffix(line, []byte("\n")))
		if reason != "" {
			return reason, nil
		}
		if reason := v.leaders.entry(record); reason != "" {
			return reason, nil
		}
		v.report.Entries++
		if v.sink != nil {
			if err := v.sink.Line(record); err != nil {
				return "", err
			}
		}
	}
	if g.checkpoint.Head != v.chain.Head {
		return fmt.Sprintf("its checkpoint is of entry %d with another hash than the last line's", g.checkpoint.Seq), nil
	}
	if reason := v.leaders.checkpoint(g.checkpoint); reason != "" {
		return reason, nil
	}
	if v.sink != nil {
		return "", v.sink.Checkpoint(g.checkpoint)
	}
	return "", nil
}

func (v *verifying) find(seq uint64, reason string) {
	v.report.Finding = &journal.DamageError{
		File: "stream " + Stream(v.report.Kernel), Line: int64(seq), Seq: v.chain.Head.Seq + 1, Reason: "message of this number: " + reason,
		Remedy: "the kernel's own journal is the truth: \"pwos audit verify\" there shows whether it is whole",
	}
}
