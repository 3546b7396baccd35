package view

import (
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// Causes is the chain of causes of a call, which begins with the call.
type Causes struct {
	Calls  []WholeCall
	Prompt *string // text of the prompt that led to the step that the chain leads to; nil: it is not known

	seen map[int64]bool
	end  string // description of the end of the chain
}

// maxCauses bounds a chain.
const maxCauses = 64

// Add adds the next call of the chain, and returns the entry of the call after it; 0 if the chain has ended.
func (w *Causes) Add(s WholeCall) (next int64) {
	if w.seen == nil {
		w.seen = make(map[int64]bool)
	}
	w.seen[s.Entry.Seq] = true
	w.Calls = append(w.Calls, s)
	var cause *schema.AuditEntry
	if named := s.cause(); named != nil {
		cause = &named.Entry
	}
	switch {
	case cause != nil && w.seen[cause.Seq]:
		w.end = fmt.Sprintf("the chain is a cycle: entry %d is among its own causes", cause.Seq)
	case cause != nil && len(w.Calls) == maxCauses:
		w.end = fmt.Sprintf("the chain continues after %d causes: \"pwos why %d\" shows more", maxCauses, cause.Seq)
	case cause != nil:
		return cause.Seq
	case s.CauseID != "" && s.CauseID != s.Entry.ID && s.CauseLater == 0:
		w.end = fmt.Sprintf("a cause is missing: the message %s is not in the record that you may see", shortened(Escaped(s.CauseID), maxShown))
	case s.Entry.Type == schema.KernelBooted.Type:
		w.end = "it begins with the kernel's start"
	case Internal(s.Entry.Type):
		w.end = "it begins with the kernel itself"
	case s.Entry.PID == 0:
		w.end = "it begins with the operator, over " + DoorText(s.Conn)
	default:
		w.end = "it begins with an agent that names no cause, and whose spawn is not in the record that you may see"
	}
	return 0
}

// Step returns the step of which the chain has the beginning; nil: it has none.
func (w *Causes) Step() *schema.StepBeginOutput {
	for i := range w.Calls {
		if step := w.Calls[i].begins(); step != nil {
			return step
		}
	}
	return nil
}

// begins returns the step that a call has begun; nil: none.
func (s *WholeCall) begins() *schema.StepBeginOutput {
	if s.Entry.Type != schema.StepBegin.Type || !s.Entry.Success {
		return nil
	}
	if out, ok := As[schema.StepBeginOutput](s.Entry.Payload); ok && out.Step > 0 {
		return &out
	}
	return nil
}

// cause returns the call that precedes this one in a chain: its cause, or the call that spawned its agent. A cause that is missing is
// not replaced, but one that is none is.
func (s *WholeCall) cause() *schema.RelatedCall {
	if cause := s.Call(schema.RelationCause); cause != nil {
		return cause
	}
	if s.CauseID == "" || s.CauseLater != 0 {
		return s.Call(schema.RelationSpawned)
	}
	return nil
}

// Table returns a table of the calls, each with its authority, and the end of the chain.
func (w *Causes) Table(names Names, style Paint) *Table {
	t, prompt := new(Table), w.Prompt
	for i := range w.Calls {
		s := &w.Calls[i]
		e := Entry{AuditEntry: s.Entry}
		link := ""
		if i > 0 {
			link = w.link(i) + ": "
		}
		t.Row(fmt.Sprintf("%5d", e.Seq), Moment(e.Time), e.who(names), link+e.Line(names, style))
		if prompt != nil && s.begins() != nil {
			t.Row("", "", "", style(Faint, "asked for by: "+shortened(Escaped(*prompt), longestPrompt)))
			prompt = nil
		}
		for j := range s.Authority {
			t.Row("", "", "", style(Faint, "allowed: "+grantText(&s.Authority[j], &s.Entry, names)))
		}
		if s.CauseLater != 0 {
			t.Row("", "", "", style(Faint, "cause: "+s.laterText()))
		}
		if cause := s.cause(); cause != nil && cause.Claimed {
			t.Row("", "", "", style(Faint, s.knownText()))
		}
		if a := s.Approval; a != nil {
			t.Row("", "", "", style(Faint, fmt.Sprintf("approved: %s, as rule %s asks", Escaped(a.Approval), Escaped(a.Rule))))
		}
		if r := s.Rule; r != nil {
			t.Row("", "", "", style(Bad, "refused by rule "+Escaped(r.Rule)))
		}
	}
	t.Row("", "", "", style(Faint, w.end))
	return t
}

// link describes the relation of a call to the one before it in the list.
func (w *Causes) link(i int) string {
	after := &w.Calls[i-1]
	cause := after.cause()
	switch {
	case cause.Relation == schema.RelationSpawned:
		return "spawned by"
	case cause.Claimed:
		return "claims to be caused by"
	case mailed(after.Entry.Type):
		return "received mail of"
	}
	return "caused by"
}

// mailed reports whether the cause of a syscall that the kernel knows is the mail that it receives.
func mailed(typ string) bool { return typ == schema.IPCReceive.Type || typ == schema.IPCDeliver.Type }

// knownText describes what the kernel knows of the origin of a call that claims a cause.
func (s *WholeCall) knownText() string {
	made := s.Call(schema.RelationSpawned)
	if made == nil {
		return "the kernel knows no cause: only its message names one"
	}
	return fmt.Sprintf("the kernel knows no cause but the spawn of its agent, entry %d: only its message names one", made.Entry.Seq)
}

// Line returns the chain as JSON.
func (w *Causes) Line() []byte {
	chain := []byte{'['}
	for i := range w.Calls {
		if i > 0 {
			chain = append(chain, ',')
		}
		chain = append(chain, w.Calls[i].Raw...)
	}
	line := Object(nil).Raw("chain", append(chain, ']')).Text("end", w.end)
	if w.Prompt != nil {
		line = line.Text("prompt", *w.Prompt)
	}
	return line.Close()
}
