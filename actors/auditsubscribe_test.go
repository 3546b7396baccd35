package actors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/schema"
)

// pushedRows returns the data of the events of a subscription to the audit log that have arrived.
func pushedRows(t *testing.T, c *client) (rows []string) {
	t.Helper()
	synctest.Wait()
	for _, a := range c.pending() {
		var e schema.AuditEntry
		if a.Kind != schema.KindEvent || a.Type != "Audit.Recorded" || json.Unmarshal(a.Data, &e) != nil {
			t.Fatalf("got %s %s", a, a.Data)
		}
		if a.Meta.Causation != e.ID || a.Meta.Correlation != string(e.Correlation) {
			t.Errorf("entry of %q is pushed because of %q, correlation %q", e.ID, a.Meta.Causation, a.Meta.Correlation)
		}
		rows = append(rows, string(a.Data))
	}
	return rows
}

// loggedRows returns the rows of Audit.Log, without those of the queries themselves.
func loggedRows(t *testing.T, c *client, requests bool) (rows []string) {
	t.Helper()
	for since, more := int64(0), true; more; {
		c.send(query("look", "Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":1000,"request":%t}`, since, requests)))
		var page struct {
			Entries []json.RawMessage
			Next    int64
		}
		if err := json.Unmarshal(c.next().Data, &page); err != nil {
			t.Fatal(err)
		}
		for _, raw := range page.Entries {
			if !bytes.Contains(raw, []byte(`"type":"Audit.Log"`)) {
				rows = append(rows, string(raw))
			}
		}
		since, more = page.Next, page.Next != 0
	}
	return rows
}

// checkSynced shows that an entry is on disk, so that a crash would not lose it.
func checkSynced(t *testing.T, s *system, row string) {
	t.Helper()
	var e schema.AuditEntry
	if err := json.Unmarshal([]byte(row), &e); err != nil {
		t.Fatal(err)
	}
	r := journal.NewReader(faultfs.FromImage(s.disk.Image()), "/journal", journal.ReaderOptions{From: uint64(e.Seq)})
	defer r.Close()
	if _, err := r.Next(context.Background()); err != nil {
		t.Errorf("entry %d was pushed and is not on disk: %v", e.Seq, err)
	}
}

// TestRecordedIsPushed: a subscriber to the audit log gets every entry once and in order, as Audit.Log shows it: from the
// requested entry, or those after its own. Entries of queries alone are pushed too, when they are on disk. A call with an
// effect is the row of its end. Questions of subscriptions are not journaled, and none are asked while nothing happens.
func TestRecordedIsPushed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startJudged(t, faultfs.NewDisk())
		worker, all, late, some := s.connect(), s.connect(), s.connect(), s.connect()
		worker.send(ping("before", "1"), fetchOf("effect", "a"))
		worker.take(2)
		for _, sub := range []struct {
			c    *client
			data string
		}{{all, `{"since_seq":0}`}, {late, `{}`}, {some, `{"since_seq":2,"types":["Http.*","Syscall.List"],"pid":0}`}} {
			sub.c.send(command("sub", "Audit.Subscribe", sub.data))
			if a := sub.c.next(); string(a.Data) != `{"success":true}` {
				t.Fatalf("%s: %s", a, a.Data)
			}
		}
		var got, gotLate, gotSome []string
		read := func() {
			got, gotLate, gotSome = append(got, pushedRows(t, all)...), append(gotLate, pushedRows(t, late)...), append(gotSome, pushedRows(t, some)...)
		}
		read()
		for i := range 20 {
			id := fmt.Sprint("call-", i)
			for _, frame := range []string{ping(id, "1"), fetchOf(id, "fail"), fetchOf(id, "refused")} {
				worker.send(frame)
				worker.next()
				read()
				if len(got) == 0 {
					t.Fatal("nothing was pushed")
				}
				checkSynced(t, s, got[len(got)-1])
			}
		}
		want := loggedRows(t, worker, false)
		read()
		ours := slices.DeleteFunc(got, func(row string) bool { return strings.Contains(row, `"type":"Audit.Log"`) })
		if !slices.Equal(ours, want) {
			t.Errorf("pushed\n%s\nlogged\n%s", strings.Join(ours, "\n"), strings.Join(want, "\n"))
		}
		after := slices.IndexFunc(want, func(row string) bool { return strings.Contains(row, `"type":"Audit.Subscribe"`) }) + 2
		gotLate = slices.DeleteFunc(gotLate, func(row string) bool { return strings.Contains(row, `"type":"Audit.Log"`) })
		if !slices.Equal(gotLate, want[after:]) {
			t.Errorf("a later subscriber got %d entries, want %d:\n%s", len(gotLate), len(want)-after, strings.Join(gotLate, "\n"))
		}
		fetched := slices.DeleteFunc(want, func(row string) bool { return !strings.Contains(row, `"type":"Http.Fetch"`) })
		if !slices.Equal(gotSome, fetched) || len(fetched) != 41 {
			t.Errorf("pushed of fetches\n%s\nwant\n%s", strings.Join(gotSome, "\n"), strings.Join(fetched, "\n"))
		}
		before := len(s.entries())
		read()
		count := 0
		for _, e := range s.entries() {
			if e.Type == "Audit.Subscribe" {
				count++
			} else if e.Type == "Audit.Watch" {
				t.Error("a question is journaled")
			}
		}
		if count != 3 || len(s.entries()) != before {
			t.Errorf("%d subscriptions are journaled, want 3; the idle kernel has %d entries, had %d", count, len(s.entries()), before)
		}
	})
}

// TestRecordedHasItsRequest: with request each pushed row has the data of its message, as Audit.Log shows it; for a call
// with an effect, whose row is its end, the data of the intent.
func TestRecordedHasItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startJudged(t, faultfs.NewDisk())
		worker, all := s.connect(), s.connect()
		worker.send(ping("before", "1"), fetchOf("effect", "a"))
		worker.take(2)
		all.send(command("sub", "Audit.Subscribe", `{"since_seq":0,"request":true}`))
		all.next()
		got := pushedRows(t, all)
		worker.send(fetchOf("more", "fail"), ping("again", "2"))
		worker.take(2)
		got = append(got, pushedRows(t, all)...)
		want := loggedRows(t, worker, true)
		if !slices.Equal(got, want) {
			t.Errorf("pushed\n%s\nlogged\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, part := range []string{`"request":{"payload":2}`, `"request":{"url":`} {
			if !strings.Contains(strings.Join(got, "\n"), part) {
				t.Errorf("no %s in\n%s", part, strings.Join(got, "\n"))
			}
		}
	})
}

// TestSlowFollowerMissesNothing shows that a slow subscriber gets every entry, later.
func TestSlowFollowerMissesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startJudged(t, faultfs.NewDisk())
		slow, worker := s.serve(newLink(schema.OsMessage, schema.MaxLine, 300)), s.connect()
		slow.send(command("sub", "Audit.Subscribe", `{}`))
		synctest.Wait()
		const calls = 500
		for i := range calls {
			worker.send(ping(fmt.Sprint(i), "1"))
			worker.next()
		}
		synctest.Wait()
		slow.next()
		for i := range calls {
			if a := slow.next(); a.Meta.Causation != fmt.Sprint(i) {
				t.Fatalf("event %d is of %q", i, a.Meta.Causation)
			}
		}
	})
}
