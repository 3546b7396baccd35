package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/schema"
)

// longest bounds a value in the description of an undo, in bytes.
const longest = 200

// UndoText describes in a line what an undo has changed, or would change.
func UndoText(out *schema.UndoOutput) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s of pid %d, seq %d: ", map[bool]string{false: "undid", true: "would undo"}[out.DryRun], out.Type, out.PID, out.Seq)
	switch {
	case out.Key != "" && out.Gone:
		b.WriteString(Escaped(out.Key) + " is absent, as before")
	case out.Key != "" && out.Value == nil:
		b.WriteString(Escaped(out.Key) + " has its earlier value, which is too long to show")
	case out.Key != "":
		b.WriteString(Escaped(out.Key) + " is " + clip.Text(Shown(out.Value), longest) + ", as before")
	case out.Holder != 0 && out.Token == nil:
		fmt.Fprintf(&b, "pid %d has no token, as before", out.Holder)
	case out.Holder != 0:
		fmt.Fprintf(&b, "pid %d may call %s, as before", out.Holder, Escaped(strings.Join(out.Token.AllowedSyscalls, ", ")))
	case out.Tool != "":
		b.WriteString("with " + Escaped(out.Tool))
	case len(out.Put) > 0:
		fmt.Fprintf(&b, "message %d is in the mailbox of %s again", out.MsgID, pidsText(out.Put))
	default:
		fmt.Fprintf(&b, "message %d is removed from the mailbox of %s", out.MsgID, pidsText(out.Taken))
		if len(out.Read) > 0 {
			b.WriteString("; no longer in that of " + pidsText(out.Read) + " before")
		}
	}
	if out.By != 0 {
		fmt.Fprintf(&b, `; to revert the undo: "pwos undo %d"`, out.By)
	}
	return b.String()
}

// pidsText lists PIDs, the first few of many.
func pidsText(pids []int64) string {
	const most = 8
	var b strings.Builder
	for i, pid := range pids[:min(len(pids), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("pid " + strconv.FormatInt(pid, 10))
	}
	if more := len(pids) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// ReplayTable formats a past state. A single value is shown unchanged.
func ReplayTable(out *schema.ReplayOutput, at string) *Table {
	t := &Table{}
	t.Row("seq", strconv.FormatInt(out.Seq, 10))
	t.Row("time", at)
	t.Row("tick", strconv.FormatInt(out.Tick, 10))
	t.Row("head", out.Head)
	if p := out.Process; p != nil {
		t.Row("pid", strconv.FormatInt(p.PID, 10))
		t.Row("agent", Escaped(p.AgentID))
		t.Row("state", StateText(p))
		t.Row("parent", strconv.FormatInt(p.ParentPID, 10))
	}
	if k := out.Token; k != nil {
		t.Row("may call", Escaped(strings.Join(k.AllowedSyscalls, ", ")))
		t.Row("expires", Expiry(k.ExpiresAtTick))
	}
	if m := out.Memory; m != nil {
		t.Row("memory", Shown(m.State))
		t.Row("deltas", strconv.FormatInt(m.Deltas, 10))
	}
	if out.Mailbox != nil {
		t.Row("mailbox", strconv.FormatInt(*out.Mailbox, 10))
	}
	if all := out.Summary; all != nil {
		for _, state := range slices.Sorted(maps.Keys(all.Processes)) {
			t.Row(strings.ToLower(state), strconv.FormatInt(all.Processes[state], 10))
		}
		t.Row("keys", strconv.FormatInt(all.Keys, 10))
		t.Row("tokens", strconv.FormatInt(all.Tokens, 10))
		t.Row("messages", strconv.FormatInt(all.Messages, 10))
	}
	return t
}
