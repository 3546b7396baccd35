package cluster

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// Headers of a stream's messages. A message has whole lines of the journal, each with its '\n'. Lines that are together longer
// than a message may be are cut into parts; the last one has the other headers.
const (
	checkpointHeader = "Pwos-Checkpoint" // of the last line
	encodingHeader   = "Pwos-Encoding"   // encodingS2; absent: the lines as they are
	partHeader       = "Pwos-Part"       // N/OF, from 1
)

// encodingS2 says that the lines are compressed as one S2 block.
const encodingS2 = "s2"

// headerRoom is the most that a message's headers take, in bytes.
const headerRoom = 2 << 10

const (
	// groupBytes is how many bytes of lines begin a new message. That many fit into one even if they cannot be compressed.
	groupBytes = 900 << 10
	// maxGroup is the length of the longest group.
	maxGroup = groupBytes + journal.MaxLine
	// compressFrom is the length of the shortest group that is compressed: a single entry would hardly get shorter.
	compressFrom = 4 << 10
)

// A group is the part of a journal that one message, or its parts, carry. Its buffers can be used again once the messages are sent.
type group struct {
	lines  []byte
	packed []byte       // the lines in encodingS2
	head   journal.Head // of the last line
}

// reset empties g. It keeps buffers of the usual length.
func (g *group) reset() {
	if cap(g.lines) > 2*groupBytes {
		*g = group{}
	}
	g.lines, g.head = g.lines[:0], journal.Head{}
}

// messages returns the messages of a group, each of at most most bytes.
func (g *group) messages(kernel string, signer *journal.HeadSigner, most int, now time.Time) ([]*nats.Msg, error) {
	checkpoint, err := signer.Sign(g.head, now)
	if err != nil {
		return nil, err
	}
	data, encoding := g.lines, ""
	if len(g.lines) >= compressFrom {
		if g.packed = s2.Encode(g.packed, g.lines); len(g.packed) < len(g.lines) {
			data, encoding = g.packed, encodingS2
		}
	}
	subject, most := JournalSubject(kernel), most-headerRoom
	parts := (len(data) + most - 1) / most
	list := make([]*nats.Msg, 0, parts)
	for part := range parts {
		m := nats.NewMsg(subject)
		m.Data = data[part*most : min((part+1)*most, len(data))]
		if parts > 1 {
			m.Header.Set(partHeader, fmt.Sprintf("%d/%d", part+1, parts))
		}
		if part == parts-1 {
			m.Header.Set(checkpointHeader, string(checkpoint.AppendLine(nil)))
			if encoding != "" {
				m.Header.Set(encodingHeader, encoding)
			}
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
// Parts of an incomplete group are dropped: the writer was interrupted, and started the group again.
func (a *assembly) add(header nats.Header, data []byte) (_ *received, reason string) {
	part, of, ok := partOf(header.Get(partHeader))
	if !ok {
		return nil, "the message's part is not written as N/OF"
	}
	if part > 1 && (part != a.next || of != a.of) {
		return nil, fmt.Sprintf("part %d of %d of some lines follows no part %d", part, of, part-1)
	}
	if part == 1 {
		a.parts, a.next, a.of = a.parts[:0], 0, 0
	}
	if len(a.parts)+len(data) > maxGroup && of > 1 {
		return nil, tooLong
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
	if err != nil {
		return nil, "the message has no checkpoint of its last line"
	}
	if data, reason = decoded(header.Get(encodingHeader), data); reason != "" {
		return nil, reason
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		return nil, "the message does not end with a line end"
	}
	return &received{data, checkpoint}, ""
}

// tooLong says that a message, or its parts together, have more bytes than gather puts into a group.
const tooLong = "its lines are together longer than those of a message may be"

// decoded returns the lines of a group.
func decoded(encoding string, data []byte) (lines []byte, reason string) {
	switch encoding {
	case "":
		return data, ""
	case encodingS2:
		n, err := s2.DecodedLen(data)
		if err == nil && n > maxGroup {
			return nil, tooLong
		}
		if err == nil {
			data, err = s2.Decode(nil, data)
		}
		if err != nil {
			return nil, fmt.Sprintf("its lines cannot be decompressed: %v", err)
		}
		return data, ""
	}
	return nil, fmt.Sprintf("this build of pwos does not know its encoding %q", fault.Clip(encoding))
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
	answer := len(m.Header.Values(jetstream.StreamHeader)) > 0
	if m.Header.Get(checkpointHeader) == "" && m.Header.Get(partHeader) == "" {
		answer = answer || len(m.Data) == 0 || bytes.HasPrefix(m.Data, []byte(`{"type":"io.nats.jetstream.`)) || // of its API
			bytes.HasPrefix(m.Data, []byte(`{"stream":`)) || bytes.HasPrefix(m.Data, []byte(`{"error":`)) // to a publication
	}
	return m, !answer, nil
}
