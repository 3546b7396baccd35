package delta

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// A delta is kept as one text: 1 if it broke a rule, else 0; its changes as one JSON object; its resource changes;
// its relationship changes. Changes of amounts are their number, then for each, by ascending name, the name and the
// eight bytes of the amount. Numbers are unsigned varints, a text is its length followed by its bytes. The rest of
// the delta, its intent, action and outcome, is in the journal.

// encode returns the body of a delta. It aliases nothing.
func encode(in *schema.CommitDeltaInput) string {
	changes := patch(in.Changes) // may be long, so it is copied once
	head := []byte{0}
	if in.GovernanceViolation != nil && *in.GovernanceViolation {
		head[0] = 1
	}
	head = binary.AppendUvarint(head, uint64(len(changes)))
	amounts := appendAmounts(appendAmounts(nil, in.ResourceChanges), in.RelationshipChanges)
	var body strings.Builder
	body.Grow(len(head) + len(changes) + len(amounts))
	body.Write(head)
	body.Write(changes)
	body.Write(amounts)
	return body.String()
}

// afterChanges is the part of a body behind its changes.
func afterChanges(body string) string {
	length, size := binary.Uvarint([]byte(body[1:min(len(body), 1+binary.MaxVarintLen64)]))
	return body[1+size+int(length):]
}

// patch writes changes as one JSON object, its members in ascending order.
func patch(changes map[string]schema.Value) []byte {
	size := len("{}")
	for name, value := range changes {
		size += len(`"":,`) + len(name) + len(value)
	}
	text := append(make([]byte, 0, size), '{')
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(schema.AppendString(text, name), ':')
		text = append(text, changes[name]...)
	}
	return append(text, '}')
}

// appendAmounts keeps amounts bit by bit: parsing must not change a sum.
func appendAmounts(dst []byte, amounts map[string]float64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(amounts)))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		dst = binary.BigEndian.AppendUint64(kernel.AppendText(dst, name), math.Float64bits(amounts[name]))
	}
	return dst
}

// reader reads bodies and snapshots.
type reader struct{ kernel.ChunkReader }

func newReader(from []byte) *reader { return &reader{kernel.ChunkReader{Rest: from}} }

// tag returns the next byte.
func (r *reader) tag() byte {
	b := r.Take(1)
	if r.Bad {
		return 0
	}
	return b[0]
}

// amount returns the next amount, which may not be finite if appendAmounts has not written it.
func (r *reader) amount() float64 {
	b := r.Take(8)
	if r.Bad {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// amounts calls yield with each of the next amounts.
func (r *reader) amounts(yield func(name string, amount float64)) {
	for n := r.Unsigned(); n > 0 && !r.Bad; n-- {
		name, amount := r.Text(), r.amount()
		if !r.Bad {
			yield(name, amount)
		}
	}
}

// wellFormed reports whether encode could have written body.
func wellFormed(body []byte) bool {
	r := newReader(body)
	finite := true
	check := func(_ string, amount float64) { finite = finite && !math.IsInf(amount, 0) && !math.IsNaN(amount) }
	violation, changes := r.tag(), r.Bytes()
	r.amounts(check)
	r.amounts(check)
	return !r.Bad && finite && violation <= 1 && len(r.Rest) == 0 && schema.Valid(changes) && changes[0] == '{'
}
