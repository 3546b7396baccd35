package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// WholeCall is an answer of Audit.Show.
type WholeCall struct {
	schema.AuditShowOutput

	Raw   schema.Value
	Asked *schema.ApprovalState // the approval that was requested before the call; nil: none, or not known
}

// Names returns the names of processes in the answer.
func (s *WholeCall) Names() Names {
	names := make(Names)
	for _, p := range s.Processes {
		names[p.PID] = p.AgentID
	}
	names.Learn(&s.Entry)
	for i := range s.Related {
		names.Learn(&s.Related[i].Entry)
	}
	return names
}

// Table returns a table with a row for each property of the call.
func (s *WholeCall) Table(names Names, style Paint) *Table {
	t := new(Table)
	e := &Entry{AuditEntry: s.Entry}
	t.Row("entry", fmt.Sprint(e.Seq))
	t.Row("call", e.Line(names, style))
	t.Row("when", fmt.Sprintf("%s, tick %d, took %s", Moment(e.Time), e.Tick, microseconds(e.LatencyUS)))
	t.Row("who", s.caller(e, names))
	t.Row("door", fmt.Sprintf("%s, origin %s", DoorText(s.Conn), Escaped(s.Origin)))
	s.authority(t, names)
	s.decision(t, style)
	if len(e.Request) > 0 {
		t.Row("data", quote.JSON(string(e.Request)))
	}
	if len(e.Payload) > 0 && string(e.Payload) != "null" {
		t.Row("answer", quote.JSON(string(e.Payload)))
	}
	if s.Repeats != 0 {
		t.Row("repeats", fmt.Sprintf("entry %d, whose outcome was repeated", s.Repeats))
	}
	if e.Correlation != "" {
		t.Row("correlation", Escaped(string(e.Correlation)))
	}
	s.causes(t, names, style)
	s.proof(t)
	return t
}

// Facts returns the rows of Table about the caller, the authority, the decision and the proof.
func (s *WholeCall) Facts(names Names) *Table {
	t := new(Table)
	t.Row("who", s.caller(&Entry{AuditEntry: s.Entry}, names))
	t.Row("door", fmt.Sprintf("%s, origin %s", DoorText(s.Conn), Escaped(s.Origin)))
	s.authority(t, names)
	s.decision(t, func(_ Look, text string) string { return text })
	s.proof(t)
	return t
}

// caller describes the calling process, its ancestors, and the call that spawned it.
func (s *WholeCall) caller(e *Entry, names Names) string {
	who := e.who(names)
	for i, p := range s.Processes {
		switch {
		case i == 0 && p.Intent != "":
			who += " (" + shortened(Escaped(p.Intent), maxShown) + ")"
		case i > 0:
			who += fmt.Sprintf(", below %d %s", p.PID, names.Of(p.PID))
		}
	}
	if made := s.Call(schema.RelationSpawned); made != nil {
		who += fmt.Sprintf(", since entry %d", made.Entry.Seq)
	}
	return who
}

// DoorText describes the connection of an entry.
func DoorText(conn string) string {
	switch kind, rest, _ := strings.Cut(conn, "-"); {
	case conn == "kernel":
		return "the kernel itself"
	case conn == "recovery":
		return "the kernel's start"
	case conn == "inline":
		return "inline"
	case kind == "c" && rest != "":
		return "socket connection " + Escaped(conn)
	case kind == "a" && rest != "":
		return "the channel of its program, " + Escaped(conn)
	}
	return Escaped(conn)
}

// authority describes the authority under which the call was made.
func (s *WholeCall) authority(t *Table, names Names) {
	switch {
	case Internal(s.Entry.Type):
		t.Row("authority", "a step of the kernel, for the call that is its cause")
		return
	case s.Entry.PID == 0:
		t.Row("authority", "the operator may make any call")
		return
	}
	for i := range s.Authority {
		t.Row("authority", grantText(&s.Authority[i], &s.Entry, names))
	}
	if len(s.Authority) == 0 {
		t.Row("authority", "no token of it is in the record that you may see")
	}
}

// grantText describes the grantor and the grant, with the pattern that allows the call, if any.
func grantText(g *schema.ShownToken, e *schema.AuditEntry, names Names) string {
	at := fmt.Sprintf(", entry %d %s", g.Seq, Escaped(g.Type))
	if g.Token == nil {
		return fmt.Sprintf("%s had no token: %s revoked it%s", names.Of(g.PID), names.Of(g.By), at)
	}
	given := listed(g.Token.AllowedSyscalls)
	if row, ok := schema.Lookup(e.Type); ok {
		if i := slices.IndexFunc(g.Token.AllowedSyscalls, func(p string) bool { return allows([]string{p}, row) }); i >= 0 {
			given = Escaped(g.Token.AllowedSyscalls[i])
		}
	}
	text := fmt.Sprintf("%s granted %s %s%s", names.Of(g.Token.GrantedBy), names.Of(g.PID), given, at)
	if end := g.Token.ExpiresAtTick; end != nil {
		text += fmt.Sprintf(", up to tick %d", *end)
	}
	return text
}

// listed joins texts from others, escaped.
func listed(texts []string) string { return shortened(Escaped(strings.Join(texts, ", ")), maxShown) }

// decision names the approval or the rule that decided the call.
func (s *WholeCall) decision(t *Table, style Paint) {
	if a := s.Approval; a != nil {
		text := fmt.Sprintf("%s, as rule %s asks", Escaped(a.Approval), Escaped(a.Rule))
		if q := s.Asked; q != nil && q.Decided != nil {
			text += fmt.Sprintf("; answered %s by %s", Moment(q.Decided.At), DoorText(q.Decided.Conn))
			if q.Decided.Key != "" {
				text += " with the key " + Escaped(q.Decided.Key)
			}
			if q.Why != "" {
				text += ": " + Escaped(q.Why)
			}
		}
		if a.Advisory {
			text += style(Bad, ", advisory: the agent could have answered itself")
		}
		t.Row("approval", text)
	}
	if r := s.Rule; r != nil {
		text := Escaped(r.Rule)
		if r.At != "" {
			text += " at " + Escaped(r.At)
		}
		t.Row("rule", text)
	}
}

// causes describes the cause of the call, and the calls that it caused.
func (s *WholeCall) causes(t *Table, names Names, style Paint) {
	found := false
	for i := range s.Related {
		if r := &s.Related[i]; r.Relation == schema.RelationCause {
			t.Row(causeName(r.Claimed), rowText(&r.Entry, names, style))
			found = true
		}
	}
	switch {
	case s.CauseLater != 0:
		t.Row("cause", s.laterText())
	case found:
	case s.CauseID != "":
		t.Row(causeName(s.Entry.Claimed), fmt.Sprintf("message %s, which is not in the record that you may see", shortened(Escaped(s.CauseID), maxShown)))
	default:
		t.Row("cause", "none is named")
	}
	if s.Entry.Intent != 0 && s.Entry.Intent != s.Entry.Seq {
		t.Row("intent", fmt.Sprintf("entry %d, written before the effect began", s.Entry.Intent))
	}
	for i := range s.Related {
		if s.Related[i].Relation == schema.RelationEffect {
			name := "caused"
			if s.Related[i].Claimed {
				name = "claims it as its cause"
			}
			t.Row(name, rowText(&s.Related[i].Entry, names, style))
		}
	}
	if s.More {
		t.Row("caused", "and more: pwos audit log --correlation, or Audit.Log with caused_by")
	}
}

// causeName is the name of a cause that the kernel knows, or of one that only the message claims.
func causeName(claimed bool) string {
	if claimed {
		return "claims as its cause"
	}
	return "cause"
}

// laterText describes a claimed cause that is none.
func (s *WholeCall) laterText() string {
	return fmt.Sprintf("none: its message names entry %d, which was called later", s.CauseLater)
}

// rowText describes a related call in a line.
func rowText(row *schema.AuditEntry, names Names, style Paint) string {
	e := Entry{AuditEntry: *row}
	return fmt.Sprintf("%d  %s  %s", e.Seq, e.who(names), e.Line(names, style))
}

// proof describes the hash and the signature of the entry.
func (s *WholeCall) proof(t *Table) {
	t.Row("hash", Escaped(s.Proof.Hash))
	t.Row("previous", Escaped(s.Proof.Prev))
	if cp := s.Proof.Checkpoint; cp != nil {
		t.Row("signed", fmt.Sprintf("by the checkpoint of entry %d, %s, with %s", cp.Seq, Moment(cp.Time), Escaped(cp.Key)))
		return
	}
	t.Row("signed", "not yet: the next checkpoint covers it")
}
