package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// caused returns an entry with an id and a cause.
func caused(seq int64, typ, id, cause string) view.Entry {
	e := did(typ, `{}`, `{}`)
	e.Seq, e.ID, e.Causation = seq, id, schema.MaybeText(cause)
	return e
}

// told returns the narrative of entries: the depth and the seq of each sentence.
func told(entries ...view.Entry) string {
	n := &view.Narrative{Names: view.Names{}}
	var words []string
	note := func(sentences []view.Sentence) {
		for _, s := range sentences {
			words = append(words, fmt.Sprint(s.Depth, ":", s.Seq))
		}
	}
	for i := range entries {
		note(n.Add(&entries[i]))
	}
	note(n.End())
	return strings.Join(words, " ")
}

// TestNarrative: a call is below its cause. Steps wait for their call; cycles and missing causes are no errors.
func TestNarrative(t *testing.T) {
	t.Parallel()
	for want, entries := range map[string][]view.Entry{
		"0:1 1:2 2:3 1:4": {caused(1, "Memory.Set", "a", ""), caused(2, "Memory.Set", "b", "a"), caused(3, "Memory.Set", "c", "b"), caused(4, "Memory.Set", "d", "a")},
		"0:2 1:1":         {caused(1, "Capability.Endow", "s", "a"), caused(2, "Syscall.Spawn", "a", "")},
		"0:2 0:1":         {caused(1, "Capability.Endow", "s", "never"), caused(2, "Syscall.Spawn", "a", "")},
		"0:1 1:2":         {caused(1, "Memory.Set", "a", "b"), caused(2, "Memory.Set", "b", "a")},
		"0:1":             {caused(1, "Memory.Set", "a", "a")},
		"0:3":             {caused(2, "Process.Prepare", "b", ""), caused(3, "Memory.Set", "", "")},
	} {
		if got := told(entries...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	mail := caused(2, "Ipc.Receive", "r", "")
	mail.Payload = schema.Value(`{"messages":[{"msg_id":1,"sender_pid":7,"receiver_pid":7,"intent":"","payload":1,"priority":"NORMAL","sent_tick":0,"causation":"m"}]}`)
	if got := told(caused(1, "Syscall.SendMsg", "m", ""), mail); got != "0:1 1:2" {
		t.Errorf("mail: %s", got)
	}
}

// TestNarrativeOfClaims: a claimed cause is told as one, and mail is below the call of its sender alone.
func TestNarrativeOfClaims(t *testing.T) {
	t.Parallel()
	claimed := func(e view.Entry) view.Entry {
		e.Claimed = true
		return e
	}
	mail := claimed(caused(4, "Ipc.Receive", "r", "a"))
	mail.Payload = schema.Value(`{"messages":[{"msg_id":1,"sender_pid":8,"receiver_pid":7,"intent":"","payload":1,"priority":"NORMAL","sent_tick":0,"causation":"m"}]}`)
	sent := caused(3, "Syscall.SendMsg", "m", "")
	sent.PID = 8
	n := &view.Narrative{Names: view.Names{}}
	var lines []string
	for _, e := range []view.Entry{
		caused(1, "Memory.Set", "a", ""), claimed(caused(2, "Memory.Set", "b", "a")), sent, mail, claimed(caused(5, "Memory.Set", "c", "later")), caused(6, "Memory.Set", "later", "a"),
	} {
		for _, s := range n.Add(&e) {
			_, note, _ := strings.Cut(s.Text, " (it claims")
			lines = append(lines, fmt.Sprint(s.Depth, ":", s.Seq, note))
		}
	}
	if got, want := strings.Join(lines, "; "), "0:1; 1:2 this cause); 0:3; 1:4; 0:5 a cause that is not told before it); 1:6"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	forged := caused(1, "Syscall.SendMsg", "m", "") // of pid 7, with the id of another's message
	mail.Claimed, mail.Causation = false, ""
	if got := told(forged, mail); got != "0:1 0:4" {
		t.Errorf("mail is below a call of another process: %s", got)
	}
}

// TestNarrativeIsInert: text that an agent has chosen is escaped, in a page and at a terminal.
func TestNarrativeIsInert(t *testing.T) {
	t.Parallel()
	const evil = `</li><script>alert(1)</script>\u001b[2J\u202e`
	n := &view.Narrative{Names: view.Names{7: "<img src=x onerror=alert(1)>\x1b]0;x\x07"}}
	e := refused("Memory.Set", `{"key":"`+evil+`"}`, schema.StatusDenied, "<b>", "<script>\x1b[2J")
	for _, s := range n.Add(&e) {
		if page := s.HTML(); strings.Contains(page, "<script") || strings.Contains(page, "<img") || strings.ContainsAny(page, "\x1b\x07\u202e") {
			t.Errorf("a page has %q", page)
		}
		if line := s.Line(unpainted); strings.ContainsAny(line, "\x1b\x07\u202e\n") {
			t.Errorf("a line is %q", line)
		}
	}
	head := view.PageHead("<title>", "")
	if !strings.Contains(head, "default-src 'none'") || strings.Contains(head, "<title><title>") || strings.Contains(head, "<script") {
		t.Errorf("the page begins with %s", head)
	}
}
