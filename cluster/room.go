package cluster

import (
	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// MinPayload is the lowest max_payload of a bus with which kernels work: a part of the journal beside its headers, the answers
	// of JetStream, and letters of a few KB fit it.
	MinPayload = 8 << 10
	// envelopeRoom is the most that a request or an answer takes beside its letters, outcomes or data, with its headers.
	envelopeRoom = 1 << 10
	// ticksRoom is the most that ticks_left and again take in a letter.
	ticksRoom = 64
)

// maxPayload returns how many bytes a message of the bus may have now, headers included: it depends on the node that the connection goes
// to, and on its configuration. Before the first connection it is that of pwos-bus.
func maxPayload(conn *nats.Conn) int {
	if most := conn.MaxPayload(); most > 0 {
		return int(min(most, MaxMessage))
	}
	return MaxMessage
}

// Room returns how many bytes a letter may have, encoded.
func (l *Link) Room() int { return max(0, maxPayload(l.conn)-envelopeRoom) }

// encodedSize is how many bytes a letter has in a request.
func encodedSize(letter *schema.Letter) int {
	text, err := schema.Marshal(&letter.Posted)
	if err != nil {
		return MaxMessage // it cannot be sent
	}
	return len(text) + ticksRoom
}

// Carries returns why the bus does not carry a letter, nil if it does.
func (l *Link) Carries(letter *schema.Letter) *fault.Fault {
	if size, room := encodedSize(letter), l.Room(); size > room {
		return errTooLarge(size, room)
	}
	return nil
}

func errTooLarge(size, room int) *fault.Fault {
	return fault.ClusterTooLarge.New("the message has %d bytes, with its metadata and encoded; the bus carries %d to another kernel", size, room)
}

// fit makes an answer short enough for the bus. The kernel that asked asks again about letters whose outcomes are cut off.
func fit(out *answer, room int) error {
	for {
		text, err := schema.Marshal(out)
		if err != nil || len(text) <= room {
			return err
		}
		switch {
		case len(out.Outcomes) > 0:
			out.Outcomes = out.Outcomes[:len(out.Outcomes)/2]
		case out.Data != nil:
			out.Data, out.Seq = nil, 0
			out.Failed = failureOf(fault.ClusterTooLarge.New("the answer has %d bytes; the bus carries %d to another kernel", len(text), room))
		default:
			return fault.ClusterTooLarge.New("an answer has %d bytes; the bus carries %d", len(text), room)
		}
	}
}
