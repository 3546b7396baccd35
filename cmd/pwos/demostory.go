package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// story is the record of a kernel, arranged by what caused what.
type story struct {
	names  map[int64]string // of the agents, by PID
	scenes []scene
}

// scene is an entry of the record below the one that caused it.
type scene struct {
	auditEntry

	depth int
	cause string // type of the one that caused it
}

// recall reads the whole record.
func recall(ctx context.Context, c *client.Client, names map[int64]string) (*story, error) {
	var entries []auditEntry
	limit, since := int64(listPage), int64(0)
	for {
		page, err := auditPage(ctx, c, schema.Metadata{}, &schema.AuditLogInput{SinceSeq: &since, Limit: &limit})
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.entries...)
		if page.next == 0 {
			return &story{names: names, scenes: arrange(entries)}, nil
		}
		since = page.next
	}
}

// arrange puts each entry below the one whose message caused it, in the order of the record. Receiving a message is caused
// by its being sent. What the operator only asked is left out.
func arrange(entries []auditEntry) []scene {
	known := make(map[string]bool)
	for _, e := range entries {
		known[e.ID] = true
	}
	below := make(map[string][]auditEntry)
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
	var scenes []scene
	told := make(map[string]bool) // whoever names an effect as its own cause is told of once
	var tell func(cause, typ string, depth int)
	tell = func(cause, typ string, depth int) {
		if told[cause] {
			return
		}
		told[cause] = true
		for _, e := range below[cause] {
			scenes = append(scenes, scene{e, depth, typ})
			if e.ID != "" {
				tell(e.ID, e.Type, depth+1)
			}
		}
	}
	tell("", "", 0)
	return scenes
}

// received returns the first message that an Ipc.Receive took.
func received(e *schema.AuditEntry) (schema.MailMessage, bool) {
	out, ok := valueOf[schema.ReceiveOutput](e.Payload)
	if !ok || len(out.Messages) == 0 {
		return schema.MailMessage{}, false
	}
	return out.Messages[0], true
}

// aside reports whether an entry says nothing to who reads the story: the kernel's housekeeping, and waiting in vain.
func aside(e *schema.AuditEntry) bool {
	if _, ok := received(e); e.Type == "Ipc.Receive" && e.Success && !ok {
		return true
	}
	return e.Success && slices.Contains([]string{"Process.Prepare", "Ipc.Open", "Capability.Strip", "Resource.Free", "Ipc.Close"}, e.Type)
}

// who is the one who did it.
func (s *story) who(e *schema.AuditEntry) string {
	if row, ok := schema.Lookup(e.Type); ok && row.Internal {
		return "kernel"
	}
	return s.name(e.PID)
}

func (s *story) name(pid int64) string {
	if name, ok := s.names[pid]; ok {
		return name
	}
	if pid == 0 {
		return "you"
	}
	return fmt.Sprintf("pid %d", pid)
}

// what is the outcome in words; "" where the type says it all.
func (s *story) what(scene *scene) string {
	e := &scene.AuditEntry
	switch {
	case e.Status == schema.StatusRunning:
		return "still running"
	case !e.Success:
		return escaped(string(e.Error))
	}
	switch e.Type {
	case "Syscall.Spawn":
		out, _ := valueOf[schema.SpawnOutput](e.Payload)
		return fmt.Sprintf("%s is pid %d", escaped(out.ChildAgentID), out.ChildPID)
	case "Syscall.Terminate":
		out, _ := valueOf[schema.TerminateOutput](e.Payload)
		return "ends " + s.name(out.TargetPID)
	case "Syscall.SendMsg":
		out, _ := valueOf[schema.SendMsgOutput](e.Payload)
		return fmt.Sprintf("message %d to %s: %s", out.MsgID, s.name(out.ReceiverPID), out.Status)
	case "Ipc.Receive":
		m, ok := received(e)
		if !ok {
			return "nothing comes"
		}
		again := ""
		if m.Redelivered {
			again = ", once more"
		}
		return fmt.Sprintf("message %d from %s%s: %s", m.MsgID, s.name(m.SenderPID), again, shown(m.Payload))
	case "Ipc.Ack":
		return "it has dealt with it"
	case "Capability.Endow":
		token, _ := valueOf[schema.Token](e.Payload)
		return "may call " + strings.Join(token.AllowedSyscalls, ", ")
	}
	if e.Type == "Process.NoteStart" && scene.cause == "Process.NoteEnd" {
		return "its program runs again"
	}
	return meaning(e.Type)
}

// meaning is what the kernel's own commands of an agent's life come to.
func meaning(typ string) string {
	meanings := []string{
		"Process.NoteStart", "its program runs",
		"Process.NoteEnd", "its program has ended",
		"Process.Exit", "it is no more",
		"Ipc.Return", "its channel has ended: what it has not acknowledged comes again",
	}
	if i := slices.Index(meanings, typ); i >= 0 && i%2 == 0 {
		return meanings[i+1]
	}
	return ""
}

// text writes for people: with --json, stdout has the story alone. What stdout does not take ends the demo at its end.
func (d *demo) text(format string, args ...any) {
	if d.err != nil || d.app.json {
		return
	}
	if _, err := fmt.Fprintf(d.app.stdout, format, args...); err != nil {
		d.err = fmt.Errorf("write output: %w", err)
	}
}

// prose is text in lines that are easily read: of the terminal's width, or of the usual one where that is wider.
func (d *demo) prose(text string) string {
	width := d.app.width()
	if width == 0 || width > usualWidth {
		width = usualWidth
	}
	return hang("", text, width)
}

// usualWidth is how long a line of prose is where there is room, in characters.
const usualWidth = 94

// below is text that stands below a heading.
func (d *demo) below(text string) string { return hang("    ", text, d.app.width()) }

func (d *demo) heading(text string) {
	d.text("\n%s\n", d.app.style(bold, hang("", text, d.app.width())))
}

func (d *demo) line(text string) { d.text("%s\n", d.below(escaped(text))) }

func (d *demo) remark(text string) {
	d.text("%s\n", d.app.style(faint, d.below("("+escaped(text)+")")))
}

func (d *demo) opening(kernelPID int) {
	d.text("%s\n", d.app.style(faint, d.prose("pwos is a kernel for AI agents. An agent is any program that prints a line of JSON. All that "+
		"it does goes through the kernel: each message is checked against what the agent was granted, "+
		"carried out in order, written down, and answered once.")))
	d.heading(fmt.Sprintf("A kernel boots in a temporary directory: process %d.", kernelPID))
	d.heading("It starts two programs, shell scripts of some ten lines. Standard input and output are their way to the kernel.")
}

// enter introduces an agent.
func (d *demo) enter(r *role, born *schema.Descriptor) {
	d.text("%s\n", hang(fmt.Sprintf("    %-6s ", r.name), fmt.Sprintf("pid %d, may call %s; sandbox %s; restart %s",
		r.pid, strings.Join(r.allow, ", "), escaped(value(born.Sandbox)), r.restart), d.app.width()))
}

// story writes what caused what.
func (d *demo) story(s *story) error {
	if d.app.json {
		for _, scene := range s.scenes {
			o := object(nil).integer("depth", int64(scene.depth)).text("who", s.who(&scene.AuditEntry)).
				text("what", s.what(&scene)).raw("entry", scene.raw)
			if err := d.app.printLine(o.close()); err != nil {
				return err
			}
		}
		return nil
	}
	d.heading("What the kernel wrote down of it. What stands below a line, further in, was caused by it.")
	t := &table{width: d.app.width()}
	for _, scene := range s.scenes {
		e := &scene.AuditEntry
		if aside(e) {
			continue
		}
		what := s.what(&scene)
		if !e.Success {
			what = d.app.style(bad, "refused: "+what)
		}
		t.row(fmt.Sprintf("%5d", e.Seq), strings.Repeat("  ", min(scene.depth, 8))+s.who(e)+" "+e.Type, what)
	}
	var text strings.Builder
	_ = t.write(&text) // a builder takes everything
	d.text("%s", text.String())
	return nil
}

func (d *demo) verified(proof *schema.AuditVerifyOutput) {
	d.heading("The record is a chain: each entry holds the hash of the one before it. It is checked now.")
	d.text("    %s, %d entries, the last one's hash is %.16s...\n", d.app.style(good, "unbroken"), proof.Entries, proof.Head)
}

// curtain ends the demo, once all is gone.
func (d *demo) curtain() error {
	d.heading("The agents are gone, the kernel has shut down, and its directory is removed.")
	d.line(`Next: "pwos run -- PROGRAM" runs a program as an agent; examples/ has some, docs/agents.md tells how to write one.`)
	return d.err
}
