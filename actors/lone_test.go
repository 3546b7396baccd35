package actors_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestLoneCommand shows that the command of a single client is decided, synced and answered on one goroutine, and wakes no
// other.
func TestLoneCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		var on []string
		note := func(what string) { on = append(on, what+" "+goroutine()) }
		states[schema.Memory].decide = func(*kernel.Call, []string) (kernel.Result, bool, error) {
			note("decide")
			return kernel.Result{}, false, nil
		}
		s := startWith(t, states.domains())
		l := newLink(schema.OsMessage, schema.MaxLine, unbounded)
		c := s.serve(l)
		synctest.Wait()
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Sync && strings.HasSuffix(op.Path, ".ndjson") {
				note("sync")
			}
		}
		l.onWrite = func() { note("write") }
		for _, id := range []string{"a", "b"} {
			c.send(set(id, "x"))
			synctest.Wait()
		}
		if got := len(c.pending()); got != 2 {
			t.Fatalf("%d answers, want 2", got)
		}
		var steps []string
		for _, step := range on {
			what, who, _ := strings.Cut(step, " ")
			steps = append(steps, what)
			if _, reader, _ := strings.Cut(on[0], " "); who != reader {
				t.Errorf("%s ran on %s, want %s", what, who, reader)
			}
		}
		if got := strings.Join(steps, " "); got != "decide sync write decide sync write" {
			t.Errorf("steps: %s", got)
		}
	})
}

// TestReaderSyncs shows that other connections are served while a sync for one runs, that their commands share the next
// sync, and that frames that arrived on the first connection meanwhile are served afterwards.
func TestReaderSyncs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newRecorders().domains())
		gate := s.holdSyncs()
		a, b, c, d := s.connect(), s.connect(), s.connect(), s.connect()
		a.send(set("a", "x"))
		synctest.Wait()
		b.send(set("b", "y"))
		c.send(set("c", "z"))
		a.send(set("e", "v"))
		d.send(ping("d", "1"))
		expect(t, d, `d ""`)
		synctest.Wait()
		for _, client := range []*client{a, b, c} {
			if early := client.pending(); len(early) > 0 {
				t.Errorf("answered before the sync: %v", early)
			}
		}
		gate.pass()
		expect(t, a, "a 1")
		synctest.Wait()
		if early := append(b.pending(), c.pending()...); len(early) > 0 {
			t.Errorf("answered before a sync of their own: %v", early)
		}
		gate.pass()
		checkCauses(t, []string{"b"}, b.take(1))
		checkCauses(t, []string{"c"}, c.take(1))
		gate.open()
		checkCauses(t, []string{"e"}, a.take(1))
	})
}

// goroutine returns the number of the calling goroutine.
func goroutine() string {
	text := make([]byte, 64)
	text = text[:runtime.Stack(text, false)]
	return strings.Fields(string(text))[1]
}
