package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Story is the record of a kernel as a tree of causes.
type Story struct {
	Names  map[int64]string // of the agents, by PID
	Scenes []Scene
}

// Scene is an entry of the record below the one that caused it.
type Scene struct {
	Entry

	Depth int
	cause string // type of the one that caused it
}

// Arrange puts each entry below the one whose message caused it, in the order of the record. The cause of a message's
// receipt is its sending. The operator's queries are left out.
func Arrange(entries []Entry) []Scene {
	known := make(map[string]bool)
	for _, e := range entries {
		known[e.ID] = true
	}
	below := make(map[string][]Entry)
	for _, e := range entries {
		row, ok := schema.Lookup(e.Type)
		if !ok || e.PID == 0 && row.Kind == schema.KindQuery {
			continue
		}
		cause := string(e.Causation)
		if cause == "" && e.Type == "Ipc.Receive" {
			if m, ok := received(&e.AuditEntry); ok {
				cause = m.Causation
			}
		}
		if !known[cause] || cause == e.ID {
			cause = ""
		}
		below[cause] = append(below[cause], e)
	}
	var scenes []Scene
	told := make(map[string]bool) // an entry that names its own effect as its cause is shown once
	var tell func(cause, typ string, depth int)
	tell = func(cause, typ string, depth int) {
		if told[cause] {
			return
		}
		told[cause] = true
		for _, e := range below[cause] {
			scenes = append(scenes, Scene{e, depth, typ})
			if e.ID != "" {
				tell(e.ID, e.Type, depth+1)
			}
		}
	}
	tell("", "", 0)
	return scenes
}

// received returns the first message that an Ipc.Receive returned.
func received(e *schema.AuditEntry) (schema.MailMessage, bool) {
	out, ok := As[schema.ReceiveOutput](e.Payload)
	if !ok || len(out.Messages) == 0 {
		return schema.MailMessage{}, false
	}
	return out.Messages[0], true
}

// aside reports whether the story omits an entry: the kernel's housekeeping, and waits that timed out.
func aside(e *schema.AuditEntry) bool {
	if _, ok := received(e); e.Type == "Ipc.Receive" && e.Success && !ok {
		return true
	}
	return e.Success && slices.Contains([]string{"Process.Prepare", "Ipc.Open", "Capability.Strip", "Resource.Free", "Ipc.Close"}, e.Type)
}

// who names the acting process.
func (s *Story) who(e *schema.AuditEntry) string {
	if row, ok := schema.Lookup(e.Type); ok && row.Internal {
		return "kernel"
	}
	return s.name(e.PID)
}

func (s *Story) name(pid int64) string {
	if name, ok := s.Names[pid]; ok {
		return name
	}
	if pid == 0 {
		return "you"
	}
	return fmt.Sprintf("pid %d", pid)
}

// what returns the outcome in words; "" if the type is enough.
func (s *Story) what(scene *Scene) string {
	e := &scene.AuditEntry
	switch {
	case e.Status == schema.StatusRunning:
		return "still running"
	case !e.Success:
		return Escaped(string(e.Error))
	}
	switch e.Type {
	case "Syscall.Spawn":
		out, _ := As[schema.SpawnOutput](e.Payload)
		return fmt.Sprintf("%s is pid %d", Escaped(out.ChildAgentID), out.ChildPID)
	case "Syscall.Terminate":
		out, _ := As[schema.TerminateOutput](e.Payload)
		return "ends " + s.name(out.TargetPID)
	case "Syscall.SendMsg":
		out, _ := As[schema.SendMsgOutput](e.Payload)
		to := s.name(out.ReceiverPID)
		if out.ReceiverKernel != "" {
			to = At(out.ReceiverPID, out.ReceiverKernel)
		}
		return fmt.Sprintf("message %d to %s: %s", out.MsgID, to, out.Status)
	case "Ipc.Receive":
		m, ok := received(e)
		if !ok {
			return "nothing comes"
		}
		again := ""
		if m.Redelivered {
			again = ", once more"
		}
		return fmt.Sprintf("message %d from %s%s: %s", m.MsgID, s.name(m.SenderPID), again, Shown(m.Payload))
	case "Ipc.Ack":
		return "it acknowledged it"
	case "Capability.Endow":
		token, _ := As[schema.Token](e.Payload)
		return "may call " + strings.Join(token.AllowedSyscalls, ", ")
	}
	if e.Type == "Process.NoteStart" && scene.cause == "Process.NoteEnd" {
		return "its program runs again"
	}
	return meaning(e.Type)
}

// Line returns a scene as JSON.
func (s *Story) Line(scene *Scene) []byte {
	return Object(nil).Integer("depth", int64(scene.Depth)).Text("who", s.who(&scene.AuditEntry)).
		Text("what", s.what(scene)).Raw("entry", scene.Raw).Close()
}

// Table has a row for each scene that the story shows.
func (s *Story) Table(style Paint) *Table {
	t := new(Table)
	for _, scene := range s.Scenes {
		e := &scene.AuditEntry
		if aside(e) {
			continue
		}
		what := s.what(&scene)
		if !e.Success {
			what = style(Bad, "refused: "+what)
		}
		t.Row(fmt.Sprintf("%5d", e.Seq), strings.Repeat("  ", min(scene.Depth, 8))+s.who(e)+" "+e.Type, what)
	}
	return t
}

// meaning describes the kernel's own commands about an agent's life.
func meaning(typ string) string {
	return map[string]string{
		"Process.NoteStart": "its program runs",
		"Process.NoteEnd":   "its program has ended",
		"Process.Exit":      "it has ended",
		"Ipc.Return":        "its channel has ended: unacknowledged messages are redelivered",
	}[typ]
}
