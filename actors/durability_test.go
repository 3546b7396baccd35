package actors_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// TestNothingUnsyncedIsRevealed holds back the fsync of a command, and shows which answers wait for it: the command's
// own, and those of whoever may have seen what it did. Nobody else waits.
func TestNothingUnsyncedIsRevealed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		command string
		then    string // sent by another connection, while the command is not on disk
		waits   bool
		answer  string // to then
	}{
		{name: "ping", command: set("a", "x"), then: ping("b", "1"), answer: `b ""`},
		{name: "query elsewhere", command: set("a", "x"), then: processes("b"), answer: `b ""`},
		{name: "query of what it wrote", command: set("a", "x"), then: get("b"), waits: true, answer: `b "x"`},
		{name: "another command", command: set("a", "x"), then: spawn("b", "s"), waits: true, answer: "b 1"},
		{name: "query after a grant", command: grant("a", 7), then: get("b"), waits: true, answer: `b ""`},
		{name: "ping after a grant", command: grant("a", 7), then: ping("b", "1"), waits: true, answer: `b ""`},
		{name: "query after a spawn", command: spawn("a", "s"), then: get("b"), waits: true, answer: `b ""`},
		{name: "query of the audit log after a grant", command: grant("a", 7), then: query("b", "Audit.Metrics", "{}"), waits: true},
		{name: "ping after the clock has moved", command: command("a", "Memory.Set", `{"key":"x","value":1,"tick":9}`), then: ping("b", "1"), waits: true, answer: `b ""`},
		{name: "query of the audit log", command: set("a", "x"), then: query("b", "Audit.Metrics", "{}")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := startWith(t, newLibrary().domains())
				gate := s.holdSyncs()
				writer, reader := s.connect(), s.connect()
				writer.send(test.command)
				synctest.Wait()
				reader.send(test.then)
				synctest.Wait()
				expectNothing(t, writer)
				early := reader.pending()
				if len(early) > 0 == test.waits {
					t.Errorf("answers while the fsync is under way: %v, want it to wait: %v", show(early), test.waits)
				}
				gate.open()
				expect(t, writer, "a 1")
				late := append(early, reader.pending()...)
				if len(late) != 1 || (test.answer != "" && late[0].String() != test.answer) {
					t.Errorf("answers %v, want %q", show(late), test.answer)
				}
			})
		})
	}
}

// TestUnrecordedAnswersWaitToo shows that what cannot be recorded, on a full disk, waits for what it reveals all the same.
func TestUnrecordedAnswersWaitToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startHosting(t, faultfs.NewDisk(), newLibrary().domains(), idempotency.New(), textLog, actors.Hosting{}, reserving(4<<10))
		gate := s.holdSyncs()
		writer, reader := s.connect(), s.connect()
		writer.send(set("a", "x"))
		synctest.Wait()
		s.disk.Leave(0)
		var gets []string
		for range 40 {
			gets = append(gets, get("b"))
		}
		reader.send(gets...)
		expectNothing(t, reader)
		gate.open()
		expect(t, writer, "a 1")
		synctest.Wait()
		got := reader.pending()
		if len(got) != len(gets) || got[0].String() != `b "x"` {
			t.Errorf("answers %v, want them without an entry", show(got))
		}
	})
}

// TestAnswersLeaveInOrder shows that what waits for the disk leaves in the order of its requests, on each connection,
// also where some of it would not have had to wait.
func TestAnswersLeaveInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		gate := s.holdSyncs()
		a, b := s.connect(), s.connect()
		a.send(get("1"), set("2", "x"), get("3"), set("4", "y"), ping("5", "1"), get("6"))
		synctest.Wait()
		b.send(set("7", "z"), get("8"), processes("9"))
		synctest.Wait()
		expectNothing(t, a)
		expectNothing(t, b)
		gate.open()
		expect(t, a, `1 ""`, "2 1", `3 "x"`, "4 2", `5 ""`, `6 "x y z"`)
		expect(t, b, "7 3", `8 "x y z"`, `9 ""`)
	})
}

// TestWaitersShareAnFsync shows group commit: however many commands come in while an fsync runs, the next one is for all.
func TestWaitersShareAnFsync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		gate := s.holdSyncs()
		first := s.connect()
		first.send(set("first", "x"))
		synctest.Wait()
		var rest []*client
		for range 20 {
			c := s.connect()
			c.send(set("a", "y"), set("b", "y"))
			rest = append(rest, c)
			synctest.Wait()
		}
		gate.pass()
		expect(t, first, "first 1")
		for _, c := range rest {
			expectNothing(t, c)
		}
		gate.pass()
		synctest.Wait()
		for _, c := range rest {
			checkCauses(t, []string{"a", "b"}, c.pending())
		}
		if n := gate.begun.Load(); n != 2 {
			t.Errorf("%d fsyncs, want one for the first command and one for all others", n)
		}
	})
}

// TestQueriesCostNoFsync shows that a kernel which is only asked never waits for the disk.
func TestQueriesCostNoFsync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		gate := s.holdSyncs()
		c := s.connect()
		c.send(get("a"), ping("b", "1"), processes("c"))
		expect(t, c, `a ""`, `b ""`, `c ""`)
		if n := gate.begun.Load(); n != 0 {
			t.Errorf("%d fsyncs for queries", n)
		}
	})
}

// TestAnsweredIsOnDisk cuts the power after each answer: whatever command was answered before is in the journal of the
// next start, and so in its state.
func TestAnsweredIsOnDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := newLibrary()
		s := startWith(t, books.domains())
		c := s.connect()
		var acknowledged []string
		for _, key := range []string{"p", "q", "r", "s"} {
			c.send(set(key, key), get("?"))
			synctest.Wait()
			checkCauses(t, []string{key, "?"}, c.pending())
			acknowledged = append(acknowledged, key)
			next := &system{t: t, disk: s.disk.Crash(nil, faultfs.LoseAll)}
			if diff := cmp.Diff(acknowledged, next.replayed()[schema.Memory]); diff != "" {
				t.Errorf("state after a power cut (-acknowledged +found):\n%s", diff)
			}
		}
	})
}

// expectNothing checks that no answer has arrived.
func expectNothing(t testing.TB, c *client) {
	t.Helper()
	synctest.Wait()
	if got := c.pending(); len(got) != 0 {
		t.Errorf("answered too early: %v", show(got))
	}
}
