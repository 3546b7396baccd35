package view_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// shownCall returns a call with related ones.
func shownCall(seq, pid int64, typ, cause string, related ...schema.RelatedCall) view.WholeCall {
	id := fmt.Sprint("m-", seq)
	return view.WholeCall{
		AuditShowOutput: schema.AuditShowOutput{
			Entry: schema.AuditEntry{Seq: seq, PID: pid, Type: typ, ID: id, Causation: schema.MaybeText(cause), Success: true}, Conn: "c-1", CauseID: cause, Related: related,
		},
		Raw: schema.Value(fmt.Sprintf(`{"entry":{"seq":%d}}`, seq)),
	}
}

func relatedCall(relation string, seq int64) schema.RelatedCall {
	return schema.RelatedCall{Relation: relation, Entry: schema.AuditEntry{Seq: seq, ID: fmt.Sprint("m-", seq)}}
}

// TestCausesEnd: a chain ends at a call without a cause, and describes the end.
func TestCausesEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		last view.WholeCall
		want string
	}{
		{"the operator", shownCall(5, 0, "Syscall.Spawn", ""), "it begins with the operator, over socket connection c-1"},
		{"the kernel's start", shownCall(1, 0, "Kernel.Booted", ""), "it begins with the kernel's start"},
		{"a step of the kernel", shownCall(5, 3, "Process.Exit", ""), "it begins with the kernel itself"},
		{"an agent", shownCall(5, 3, "Memory.Set", ""), "it begins with an agent that names no cause, and whose spawn is not in the record that you may see"},
		{"a missing message", shownCall(5, 3, "Memory.Set", "gone"), "a cause is missing: the message gone is not in the record that you may see"},
		{"a hostile id", shownCall(5, 3, "Memory.Set", "a\x1b[31m"), `a cause is missing: the message a\u001b[31m is not in the record that you may see`},
		{"its own cause", shownCall(5, 0, "Memory.Set", "m-5"), "it begins with the operator, over socket connection c-1"},
		{"a missing message, of an agent whose spawn is known", shownCall(5, 3, "Memory.Set", "gone", relatedCall(schema.RelationSpawned, 2)), "a cause is missing: the message gone is not in the record that you may see"},
	} {
		var chain view.Causes
		if next := chain.Add(c.last); next != 0 {
			t.Errorf("%s: continues with entry %d", c.name, next)
		}
		var line struct{ End string }
		if err := json.Unmarshal(chain.Line(), &line); err != nil || line.End != c.want {
			t.Errorf("%s: ends with %q (%v), want %q", c.name, line.End, err, c.want)
		}
	}
}

// TestCausesLinks: the cause of a call is the message that it names, else its mail, else the spawn of its agent.
func TestCausesLinks(t *testing.T) {
	t.Parallel()
	mail := shownCall(7, 1, "Ipc.Receive", "m-6", relatedCall(schema.RelationSpawned, 2), relatedCall(schema.RelationCause, 6))
	mail.Entry.Causation = "" // the cause is the call that sent the message
	calls := []view.WholeCall{
		shownCall(9, 3, "Memory.Set", "m-8", relatedCall(schema.RelationSpawned, 4), relatedCall(schema.RelationCause, 8)),
		shownCall(8, 1, "Capability.Grant", "m-7", relatedCall(schema.RelationCause, 7)),
		mail,
		shownCall(6, 3, "Syscall.SendMsg", "", relatedCall(schema.RelationSpawned, 4)),
		shownCall(4, 1, "Syscall.Spawn", "m-9", relatedCall(schema.RelationCause, 9)),
	}
	calls[0].Authority = []schema.ShownToken{{Seq: 8, Type: "Capability.Grant", PID: 3, Token: &schema.Token{PID: 3, TokenGrant: schema.TokenGrant{GrantedBy: 1, AllowedSyscalls: []string{"Memory.*"}}}}}
	calls[1].Approval = &schema.ShownApproval{Approval: "a-1", Rule: "ask-grants"}
	calls[3].Rule = &schema.ShownRule{Rule: "no-mail"}
	var chain view.Causes
	for i := range calls {
		want := int64(0)
		if i+1 < len(calls) {
			want = calls[i+1].Entry.Seq
		}
		if next := chain.Add(calls[i]); next != want {
			t.Fatalf("after entry %d comes %d, want %d", calls[i].Entry.Seq, next, want)
		}
	}
	var text []string
	for _, cells := range chain.Table(view.Names{1: "boss", 3: "worker"}, func(_ view.Look, text string) string { return text }).Rows {
		text = append(text, strings.TrimSpace(cells[0]+" "+cells[3]))
	}
	for i, want := range []string{
		"9 Memory.Set", "allowed: boss granted worker Memory.*, entry 8", "8 caused by: Capability.Grant", "approved: a-1, as rule ask-grants asks",
		"7 caused by: Ipc.Receive", "6 received mail of: Syscall.SendMsg", "refused by rule no-mail", "4 spawned by: Syscall.Spawn",
		"the chain is a cycle: entry 9 is among its own causes",
	} {
		if i >= len(text) || !strings.HasPrefix(text[i], want) {
			t.Fatalf("line %d of %q, want %q", i+1, text, want)
		}
	}
	var line struct {
		Chain []struct{ Entry schema.AuditEntry }
	}
	if err := json.Unmarshal(chain.Line(), &line); err != nil || len(line.Chain) != len(calls) || line.Chain[2].Entry.Seq != 7 {
		t.Errorf("as JSON: %s, %v", chain.Line(), err)
	}
}

// TestCausesBound: a chain has at most 64 calls, and names the entry with which it continues.
func TestCausesBound(t *testing.T) {
	t.Parallel()
	var chain view.Causes
	seq := int64(1000)
	for seq != 0 {
		if len(chain.Calls) > 64 {
			t.Fatal("the chain has no end")
		}
		seq = chain.Add(shownCall(seq, 3, "Memory.Set", fmt.Sprint("m-", seq-1), relatedCall(schema.RelationCause, seq-1)))
	}
	if end := string(chain.Line()); len(chain.Calls) != 64 || !strings.Contains(end, `"end":"the chain continues after 64 causes: \"pwos why 936\" shows more"`) {
		t.Errorf("%d calls, and %s", len(chain.Calls), end[len(end)-100:])
	}
}

// TestCausesClaimed: a cause that only a message names is called a claim, beside what the kernel knows, and one that was called later is
// none.
func TestCausesClaimed(t *testing.T) {
	t.Parallel()
	claim := shownCall(9, 3, "Memory.Set", "m-8", relatedCall(schema.RelationSpawned, 4), relatedCall(schema.RelationCause, 8))
	claim.Entry.Claimed, claim.Related[1].Claimed = true, true
	later := shownCall(8, 3, "Memory.Set", "m-9", relatedCall(schema.RelationSpawned, 4))
	later.Entry.Claimed, later.CauseLater = true, 9
	mail := shownCall(4, 0, "Syscall.Spawn", "")
	var chain view.Causes
	for _, s := range []view.WholeCall{claim, later, mail} {
		chain.Add(s)
	}
	var text []string
	for _, cells := range chain.Table(view.Names{3: "worker"}, func(_ view.Look, text string) string { return text }).Rows {
		text = append(text, strings.TrimSpace(cells[0]+" "+cells[3]))
	}
	for i, want := range []string{
		"9 Memory.Set", "the kernel knows no cause but the spawn of its agent, entry 4: only its message names one",
		"8 claims to be caused by: Memory.Set", "cause: none: its message names entry 9, which was called later", "4 spawned by: Syscall.Spawn", "it begins with the operator",
	} {
		if i >= len(text) || !strings.HasPrefix(text[i], want) {
			t.Fatalf("row %d of\n%s\nis not %q", i, strings.Join(text, "\n"), want)
		}
	}
	shown := claim.Table(view.Names{}, func(_ view.Look, text string) string { return text }).Text() + later.Table(view.Names{}, func(_ view.Look, text string) string { return text }).Text()
	for _, want := range []string{"claims as its cause", "none: its message names entry 9, which was called later"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s\ndoes not say %q", shown, want)
		}
	}
}

// TestCausesPrompt: the prompt is told once, with the call that began the step which the chain leads to.
func TestCausesPrompt(t *testing.T) {
	t.Parallel()
	began := shownCall(5, 3, "Step.Begin", "")
	began.Entry.Payload = schema.Value(`{"agent":"a","step":2}`)
	none := shownCall(7, 3, "Step.Begin", "m-5", relatedCall(schema.RelationCause, 5))
	none.Entry.Payload = schema.Value(`{"agent":"a","step":0}`)
	var chain view.Causes
	chain.Add(shownCall(9, 3, "Net.Connect", "m-7", relatedCall(schema.RelationCause, 7)))
	chain.Add(none)
	if step := chain.Step(); step != nil {
		t.Errorf("step %+v", step)
	}
	chain.Add(began)
	if step := chain.Step(); step == nil || step.Agent != "a" || step.Step != 2 {
		t.Errorf("step %+v", step)
	}
	chain.Prompt = new("fetch\x1bit")
	var line struct{ Prompt string }
	if err := json.Unmarshal(chain.Line(), &line); err != nil || line.Prompt != "fetch\x1bit" {
		t.Errorf("prompt %q, %v", line.Prompt, err)
	}
	if text := chain.Table(view.Names{3: "a"}, view.Plain).Text(); strings.Count(text, `asked for by: fetch\u001bit`) != 1 {
		t.Errorf("shown as\n%s", text)
	}
}
