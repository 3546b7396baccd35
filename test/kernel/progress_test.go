package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// beginCall makes a call of a registered query in a dialect; more has further members of its metadata.
func (c *client) beginCall(d schema.Dialect, name, id, more string) {
	c.t.Helper()
	if d == schema.OsEvent {
		c.write(fmt.Sprintf(`{"type":"query","name":%q,"payload":{},"metadata":{"id":%q,"timestamp":1%s}}`+"\n", name, id, more))
	} else {
		c.write(fmt.Sprintf(`{"kind":"query","type":%q,"data":{},"metadata":{"id":%q,"timestamp":1%s}}`+"\n", name, id, more))
	}
}

// TestProgress: a caller that has requested progress gets it before the answer and in its dialect; others get none.
// Progress is not journaled.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			provider, other, caller := d.dial(t), d.dial(t), d.dial(t)
			provider.call("Syscall.Register", registering("Sum.Add", ""), nil)

			caller.beginCall(dialect, "Sum.Add", "with \"it\"", `,"progress":true`)
			var asked struct {
				CallID   string `json:"call_id"`
				Progress bool
			}
			if err := json.Unmarshal(provider.event(schema.OsMessage, "Syscall.Requested").Data, &asked); err != nil || !asked.Progress {
				t.Fatalf("the request has no mark that progress is wanted: %v", err)
			}
			report := fmt.Sprintf(`{"call_id":%q,"progress":0.5,"total":3,"message":"half"}`, asked.CallID)
			other.refused(404, "Syscall.Progress", report, "waits for this connection")
			provider.refused(422, "Syscall.Progress", fmt.Sprintf(`{"call_id":%q}`, asked.CallID), "progress")
			provider.refused(422, "Syscall.Progress", fmt.Sprintf(`{"call_id":%q,"progress":"1"}`, asked.CallID), "progress")
			provider.refused(422, "Syscall.Progress", fmt.Sprintf(`{"call_id":%q,"progress":1,"message":%q}`, asked.CallID, strings.Repeat("x", 1025)), "message")
			if a := provider.speak(schema.OsMessage, "Syscall.Progress", report, ""); string(a.Data) != `{"success":true}` || a.Metadata.Kernel != nil {
				t.Errorf("answered %s, with a proof: %v", a.Data, a.Metadata.Kernel != nil)
			}
			told := caller.event(dialect, "Syscall.Progressed")
			if want := `{"id":"with \"it\"","progress":0.5,"total":3,"message":"half"}`; string(told.Data) != want || told.Metadata.Causation != `with "it"` {
				t.Errorf("progress %s of %q, want %s", told.Data, told.Metadata.Causation, want)
			}
			provider.call("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"data":1}`, asked.CallID), nil)
			if a := caller.next(); a.Metadata.Causation != `with "it"` || a.Kind != "reply" && a.Type != "response" {
				t.Errorf("then %+v", a)
			}
			provider.refused(404, "Syscall.Progress", report, "it was answered")

			for _, not := range []string{"", `,"progress":false`, `,"progress":1`, `,"progress":"true"`} {
				caller.beginCall(dialect, "Sum.Add", "without", not)
				r := provider.event(schema.OsMessage, "Syscall.Requested")
				if err := json.Unmarshal(r.Data, &asked); err != nil || strings.Contains(string(r.Data), "progress") {
					t.Fatalf("asked %s, %v", r.Data, err)
				}
				provider.speak(schema.OsMessage, "Syscall.Progress", fmt.Sprintf(`{"call_id":%q,"progress":1}`, asked.CallID), "")
				provider.call("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"data":1}`, asked.CallID), nil)
				if a := caller.next(); a.Kind != "reply" && a.Type != "response" {
					t.Errorf("a caller that did not request progress (%q) gets %+v", not, a)
				}
			}
			if a := other.call("Audit.Log", `{"limit":1000}`, nil); strings.Contains(string(a.Data), "Syscall.Progress") {
				t.Errorf("recorded: %s", a.Data)
			}
		})
	}
}

// TestMuchProgress: a caller gets only a part of too frequent progress, and none for a call whose id leaves no room on a
// line.
func TestMuchProgress(t *testing.T) {
	t.Parallel()
	d := start(t)
	provider, caller := d.dialOn(t, "events.sock"), d.dial(t)
	provider.call("Syscall.Register", registering("Sum.Add", ""), nil)
	begun := time.Now()
	caller.beginCall(schema.OsMessage, "Sum.Add", "much", `,"progress":true`)
	r := provider.request(schema.OsMessage)
	const times = 500
	for i := range times {
		provider.speak(schema.OsMessage, "Syscall.Progress", fmt.Sprintf(`{"call_id":%q,"progress":%d}`, r.CallID, i), "")
	}
	provider.call("Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"data":"done"}`, r.CallID), nil)
	events := 0
	a := caller.next()
	for ; a.Kind == "event"; a = caller.next() {
		events++
	}
	if most := 2 + int(time.Since(begun)/(100*time.Millisecond)); events == 0 || events > most || string(a.Data) != `"done"` {
		t.Errorf("%d of %d reports, at most %d, then %s", events, times, most, a.Data)
	}

	caller.beginCall(schema.OsMessage, "Sum.Add", strings.Repeat("x", 12_000), `,"progress":true`)
	r = provider.request(schema.OsMessage)
	provider.speak(schema.OsMessage, "Syscall.Progress", fmt.Sprintf(`{"call_id":%q,"progress":1,"message":%q}`, r.CallID, strings.Repeat("y", 1000)), "")
	provider.complete(r, "done")
	if a := caller.next(); a.Kind != "reply" {
		t.Errorf("progress was sent for a call whose id fits no line: %s", a.Data)
	}
}
