package cluster

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/journal"
)

// Headers of a stream's messages. A message has whole lines of the journal, each with its '\n'. A line that is longer than
// a message may be is cut into parts; the last one has the checkpoint.
const (
	checkpointHeader = "Pwos-Checkpoint" // of the last line
	partHeader       = "Pwos-Part"       // N/OF, from 1
)

// headerRoom is the most that a message's headers take, in bytes.
const headerRoom = 2 << 10

// groupBytes is how many bytes of lines are put into one message.
const groupBytes = 256 << 10

// A group is the part of a journal that one message, or the parts of one line, carry.
type group struct {
	lines []byte
	head  journal.Head // of the last line
}

// messages returns the messages of a group, each of at most most bytes.
func (g *group) messages(kernel string, signer journal.Signer, most int, now time.Time) ([]*nats.Msg, error) {
	checkpoint, err := journal.SignHead(signer, g.head, now)
	if err != nil {
		return nil, err
	}
	subject, most := JournalSubject(kernel), most-headerRoom
	parts := (len(g.lines) + most - 1) / most
	list := make([]*nats.Msg, 0, parts)
	for part := range parts {
		m := nats.NewMsg(subject)
		m.Data = g.lines[part*most : min((part+1)*most, len(g.lines))]
		if parts > 1 {
			m.Header.Set(partHeader, fmt.Sprintf("%d/%d", part+1, parts))
		}
		if part == parts-1 {
			m.Header.Set(checkpointHeader, string(checkpoint.AppendLine(nil)))
		}
		list = append(list, m)
	}
	return list, nil
}

// assembly assembles groups from messages.
type assembly struct {
	parts []byte
	next  int // the part that is awaited; 0: none
	of    int
}

// received is a group from a stream.
type received struct {
	lines      []byte
	checkpoint journal.Checkpoint
}

// add adds the next message, and returns the group that it completes, or nil. reason says what is wrong with the message.
// Parts of an incomplete line are dropped: the writer was interrupted, and started the line again.
func (a *assembly) add(header nats.Header, data []byte) (_ *received, reason string) {
	part, of, ok := partOf(header.Get(partHeader))
	if !ok {
		return nil, "the message's part is not written as N/OF"
	}
	if part > 1 && (part != a.next || of != a.of) {
		return nil, fmt.Sprintf("part %d of %d of a line follows no part %d", part, of, part-1)
	}
	if part == 1 {
		a.parts, a.next, a.of = a.parts[:0], 0, 0
	}
	if len(a.parts)+len(data) > journal.MaxLine+1 && of > 1 {
		return nil, "the parts of a line are together longer than a line may be"
	}
	if part < of {
		a.parts, a.next, a.of = append(a.parts, data...), part+1, of
		return nil, ""
	}
	if of > 1 {
		data = append(a.parts, data...)
		a.parts, a.next, a.of = nil, 0, 0
	}
	checkpoint, err := journal.ParseCheckpoint([]byte(header.Get(checkpointHeader)))
	switch {
	case err != nil:
		return nil, "the message has no checkpoint of its last line"
	case !bytes.HasSuffix(data, []byte("\n")):
		return nil, "the message does not end with a line end"
	}
	return &received{data, checkpoint}, ""
}

// partOf reads a part header; a message without one is whole.
func partOf(text string) (part, of int, ok bool) {
	if text == "" {
		return 1, 1, true
	}
	first, second, _ := strings.Cut(text, "/")
	part, wrong := strconv.Atoi(first)
	of, wrongOf := strconv.Atoi(second)
	return part, of, wrong == nil && wrongOf == nil && 1 <= part && part <= of
}

// readMessage reads message seq of a stream. ours is false if it is an answer of JetStream that a member had sent to the stream's
// subject, since NATS does not check where answers go. Readers skip such a message.
func readMessage(ctx context.Context, stream jetstream.Stream, seq uint64) (m *jetstream.RawStreamMsg, ours bool, err error) {
	m, err = stream.GetMsg(ctx, seq)
	if err != nil {
		return nil, false, err
	}
	read := 0                                   // headers that the read itself adds
	if stream.CachedInfo().Config.AllowDirect { // a stream of an earlier build
		read = 1
	}
	answer := len(m.Header.Values(jetstream.StreamHeader)) > read
	if m.Header.Get(checkpointHeader) == "" && m.Header.Get(partHeader) == "" {
		answer = answer || len(m.Data) == 0 || bytes.HasPrefix(m.Data, []byte(`{"type":"io.nats.jetstream.`)) || // of its API
			bytes.HasPrefix(m.Data, []byte(`{"stream":`)) || bytes.HasPrefix(m.Data, []byte(`{"error":`)) // to a publication
	}
	return m, !answer, nil
}
