package view

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Narrative describes the record in sentences, as a tree of causes. Each call is below its cause, if that was recorded
// before.
type Narrative struct {
	Names  Names
	Kernel string         // name of the kernel in each sentence; empty: there is only one kernel
	Calls  *NarratedCalls // shared by the narratives of several kernels; nil: not shared

	waiting []Entry // steps of the kernel that are recorded before their cause
}

// NarratedCalls are the described calls, which may be causes of others.
type NarratedCalls struct {
	calls map[string]narrated // by message id
	order []string            // the ids, oldest first
}

// narrated is a described call. Clients choose the ids of messages: it is the first with its id.
type narrated struct {
	depth  int
	pid    int64
	kernel string
}

// Sentence describes a call.
type Sentence struct {
	Entry

	Kernel string
	Depth  int
	Who    string
	Text   string
}

// Bounds of a narrative's memory: calls that may be causes, and steps before their cause.
const (
	maxTold    = 1 << 16
	maxWaiting = 64
)

// verbs describe successful calls. The object of the call follows.
var verbs = map[string]string{
	"Approval.Decide": "answers a request for approval:", "Approval.Requested": "requests approval of", "Approval.Use": "uses the approval",
	"Capability.Endow": "gives a token to", "Capability.Grant": "grants", "Capability.GrantDefault": "grants the default to", "Capability.Revoke": "revokes the token of",
	"Clock.Advance": "advances the clock by", "Crypto.Open": "opens a secret", "Crypto.Seal": "seals a secret",
	"Host.ToolUse": "asks to use the tool", "Http.Fetch": "fetches", "Ipc.Ack": "acknowledges the messages", "Ipc.Broadcast": "sends to all",
	"Ipc.Receive": "receives mail", "Ipc.Return": "returns unacknowledged messages to", "Job.Cancel": "cancels the job", "Job.Start": "starts the job", "Kernel.Booted": "starts:", "Kernel.TakeOver": "moves to another host:", "Kernel.Ingest": "adopts",
	"Kernel.LoginFailed": "refuses a login:", "Kernel.Throttled": "throttles", "Memory.CompareAndSet": "sets", "Memory.Delete": "deletes", "Memory.Get": "reads",
	"Memory.List": "lists keys", "Memory.Set": "sets", "Net.Connect": "connects to", "Net.Publish": "publishes port", "Net.Request": "asks the upstream", "Policy.Loaded": "loads the policy",
	"Process.Attach": "attaches as", "Process.Exit": "records the end of", "Process.NoteEnd": "records the end of the program of", "Process.NoteStart": "starts the program of",
	"Process.Pause": "pauses", "Process.RestoreFiles": "restores the files of", "Process.Resume": "resumes", "Syscall.Alloc": "allocates", "Syscall.Call": "calls the tool", "Syscall.CommitDelta": "commits",
	"Syscall.Register": "adds the syscall", "Syscall.Release": "releases", "Syscall.Rollback": "rolls back", "Syscall.SendMsg": "sends mail",
	"Syscall.Shutdown": "ends the kernel", "Syscall.Spawn": "spawns", "Syscall.Terminate": "ends",
}

// Add returns the sentences that an entry adds, in order: none for housekeeping of the kernel and queries of the
// operator, several if it is the cause of earlier steps.
func (n *Narrative) Add(e *Entry) []Sentence {
	n.Names.Learn(&e.AuditEntry)
	if isOmitted(&e.AuditEntry) || OperatorQuery(&e.AuditEntry) {
		return nil
	}
	if n.Calls == nil {
		n.Calls = new(NarratedCalls)
	}
	if _, told := n.Calls.calls[string(e.Causation)]; Internal(e.Type) && e.Causation != "" && !told {
		if n.waiting = append(n.waiting, *e); len(n.waiting) <= maxWaiting {
			return nil
		}
		first := n.waiting[0]
		n.waiting = n.waiting[1:]
		return []Sentence{n.sentence(&first)}
	}
	sentences := []Sentence{n.sentence(e)}
	left := n.waiting[:0]
	for i := range n.waiting {
		if step := n.waiting[i]; e.ID != "" && string(step.Causation) == e.ID {
			sentences = append(sentences, n.sentence(&step))
		} else {
			left = append(left, step)
		}
	}
	n.waiting = left
	return sentences
}

// End returns the sentences of steps whose cause is not in the record.
func (n *Narrative) End() (sentences []Sentence) {
	for i := range n.waiting {
		sentences = append(sentences, n.sentence(&n.waiting[i]))
	}
	n.waiting = nil
	return sentences
}

// sentence describes an entry. A call whose cause is itself or a later call is at the top level.
func (n *Narrative) sentence(e *Entry) Sentence {
	depth, note := n.below(e)
	n.Calls.remember(e.ID, narrated{depth, e.PID, n.Kernel})
	who := n.Names.Of(e.PID)
	if Internal(e.Type) {
		who = "the kernel"
	} else if e.PID == 0 {
		who = "the operator"
	}
	return Sentence{Entry: *e, Kernel: n.Kernel, Depth: depth, Who: who, Text: n.text(e) + note}
}

// below returns the depth of a call in the tree, and a remark if it is there only because its message says so. The mail that it
// received precedes what its message claims.
func (n *Narrative) below(e *Entry) (depth int, note string) {
	cause := string(e.Causation)
	if m, ok := received(&e.AuditEntry); ok && e.Type == schema.IPCReceive.Type && m.Causation != "" {
		if above, told := n.Calls.calls[m.Causation]; told && above.pid == m.SenderPID && (m.SenderKernel == "" || m.SenderKernel == above.kernel) {
			return above.depth + 1, ""
		}
		if e.Claimed {
			cause = ""
		}
	}
	above, told := n.Calls.calls[cause]
	switch {
	case cause == "" || cause == e.ID:
		return 0, ""
	case !e.Claimed && told:
		return above.depth + 1, ""
	case told:
		return above.depth + 1, " (it claims this cause)"
	case e.Claimed:
		return 0, " (it claims a cause that is not told before it)"
	}
	return 0, ""
}

func (t *NarratedCalls) remember(id string, call narrated) {
	if t.calls == nil {
		t.calls = make(map[string]narrated)
	}
	if _, told := t.calls[id]; told || id == "" {
		return
	}
	if len(t.order) == maxTold {
		delete(t.calls, t.order[0])
		t.order = t.order[1:]
	}
	t.calls[id], t.order = call, append(t.order, id)
}

// received returns the first message in the answer of an Ipc.Receive.
func received(e *schema.AuditEntry) (schema.MailMessage, bool) {
	out, ok := As[schema.ReceiveOutput](e.Payload)
	if !ok || len(out.Messages) == 0 {
		return schema.MailMessage{}, false
	}
	return out.Messages[0], true
}

// isOmitted reports whether the narrative omits an entry: housekeeping of the kernel, and waits that timed out.
func isOmitted(e *schema.AuditEntry) bool {
	if _, ok := received(e); e.Type == "Ipc.Receive" && e.Success && !ok {
		return true
	}
	return e.Success && slices.Contains([]string{"Process.Prepare", "Ipc.Open", "Capability.Strip", "Resource.Free", "Ipc.Close"}, e.Type)
}

// text describes the call, as the part of a sentence after the caller's name.
func (n *Narrative) text(e *Entry) string {
	object, outcome := e.object(n.Names), e.outcome(n.Names, func(_ Look, text string) string { return text })
	verb, ok := verbs[e.Type]
	switch {
	case e.Status == schema.StatusDenied:
		verb = "is refused " + Escaped(e.Type)
	case !e.Success:
		verb = "tries " + Escaped(e.Type)
	case !ok:
		verb = "calls " + Escaped(e.Type)
	}
	text := strings.TrimRight(verb+" "+object, " ")
	if outcome != "" {
		text += " → " + outcome
	}
	return text
}

// Line formats a sentence as a line for a terminal.
func (s *Sentence) Line(style Paint) string {
	text := s.Text
	if !s.Success {
		text = style(Bad, text)
	}
	kernel := ""
	if s.Kernel != "" {
		kernel = fmt.Sprintf("%-8s  ", Escaped(s.Kernel))
	}
	return fmt.Sprintf("%s%7d  %s%s %s", kernel, s.Seq, strings.Repeat("  ", min(s.Depth, maxIndent)), style(Bold, s.Who), text)
}

// maxIndent bounds the indentation of a sentence, since a tree may be deep.
const maxIndent = 12

// JSON formats a sentence for programs.
func (s *Sentence) JSON() []byte {
	return OfKernel(s.Kernel, Object(nil).Integer("depth", int64(s.Depth)).Text("who", s.Who).Text("text", s.Text).Raw("entry", s.Raw).Close())
}

// PageHead returns the beginning of a page of sentences, which is self-contained and has no scripts. note is a
// paragraph below the title, or empty.
func PageHead(title, note string) string {
	if note != "" {
		note = "<p>" + html.EscapeString(note) + "</p>"
	}
	return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>` + html.EscapeString(title) + `</title>
<style>
:root { color-scheme: light dark; --text: #1b1b1f; --back: #fff; --faint: #5c5c66; --bad: #a3121f; --line: #dcdce2 }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6ea; --back: #17171b; --faint: #a0a0ab; --bad: #ff8a92; --line: #34343c } }
body { margin: 0 auto; max-width: 75rem; padding: 1rem; color: var(--text); background: var(--back); font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.4rem } ol { list-style: none; margin: 0; padding: 0 }
li { margin-left: calc(var(--depth) * 1.25rem); padding: .15rem .5rem; border-left: 2px solid var(--line); overflow-wrap: anywhere }
.seq, time { color: var(--faint); font-variant-numeric: tabular-nums; font-size: .85em } .bad { color: var(--bad) }
.kernel { border: 1px solid var(--line); border-radius: .4rem; padding: 0 .35rem; font-size: .85em }
</style></head><body><main><h1>` + html.EscapeString(title) + `</h1>` + note + `<ol>
`
}

// HTML formats a sentence as an item of a page.
func (s *Sentence) HTML() string {
	class := ""
	if !s.Success {
		class = ` class="bad"`
	}
	return fmt.Sprintf("<li style=\"--depth:%d\">%s<span class=\"seq\">%d</span> <time>%s</time> <b>%s</b> <span%s>%s</span></li>\n",
		min(s.Depth, maxIndent), pageKernel(s.Kernel), s.Seq, Moment(s.Time), html.EscapeString(s.Who), class, html.EscapeString(s.Text))
}

// PageMissing returns the item of a kernel that did not answer.
func PageMissing(kernel, why string) string {
	return fmt.Sprintf("<li style=\"--depth:0\" class=\"bad\">%s%s</li>\n", pageKernel(kernel), html.EscapeString(Escaped(why)))
}

// pageKernel formats the name of a kernel; "" if that is empty.
func pageKernel(name string) string {
	if name == "" {
		return ""
	}
	return `<span class="kernel">` + html.EscapeString(Escaped(name)) + "</span> "
}

// PageFoot is the end of a page.
const PageFoot = "</ol></main></body></html>\n"
