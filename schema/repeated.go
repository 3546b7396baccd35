package schema

import (
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// answerRoom is how many bytes of a line are left for an answer beside what it repeats of the request: an error and the
// answer's own metadata, or a reference to what it is about.
const answerRoom = 4 << 10

// Shorten forgets what an answer on a line of at most limit bytes has no room to repeat (MESSAGE 4.3.2): of type, id and
// correlation the longest first. It returns the fault that the first of them is, nil where all is kept.
func (m *Message) Shorten(limit int) (first *fault.Fault) {
	room := max(limit, MaxLine) - answerRoom // no configuration allows shorter lines
	// A byte takes six at most.
	if 6*(len(m.Type)+len(m.Meta.ID)+len(m.Meta.Correlation)) <= room {
		return nil
	}
	texts := [...]*string{&m.Type, &m.Meta.ID, &m.Meta.Correlation}
	fields := [...]string{m.Dialect.names().typ, "metadata.id", "metadata.correlation"}
	var lengths [len(texts)]int
	for i, text := range texts {
		lengths[i] = writtenLen(*text)
	}
	for lengths[0]+lengths[1]+lengths[2] > room {
		longest := 0
		for i, n := range lengths {
			if n > lengths[longest] {
				longest = i
			}
		}
		if first == nil {
			first = violation(fields[longest], "%s is too long: an answer repeats %s, %s and %s, which may take %d bytes together",
				fields[longest], fields[0], fields[1], fields[2], room)
		}
		*texts[longest], lengths[longest] = "", 0
	}
	return first
}

// Brief is e as there is room for beside what an answer repeats: cut where it quotes more than that, and without its cause.
func Brief(e *fault.Fault) *fault.Fault {
	return &fault.Fault{Kind: e.Kind, ID: e.ID, Message: fault.Clip(e.Text()), Field: fault.Clip(e.Field)}
}

// writtenLen is how many bytes s takes as a JSON string, its quotes not counted.
func writtenLen(s string) int { return len(jsontype.AppendString(nil, s)) - len(`""`) }
