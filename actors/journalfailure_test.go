package actors_test

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestFailedWrite has one write fail, in every way in which one does: the callers are told so, the state is as it was,
// and what follows finds a kernel that works.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault faultfs.Fault
	}{
		{"disk full", faultfs.Fault{N: 1, Err: syscall.ENOSPC}},
		{"input/output error", faultfs.Fault{N: 1, Err: syscall.EIO}},
		{"disk full half way", faultfs.Fault{N: 1, Err: syscall.ENOSPC, Short: true}},
		{"short without an error", faultfs.Fault{N: 1, Short: true, Lies: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				books := newLibrary()
				s := startWith(t, books.domains())
				c, d := s.connect(), s.connect()
				c.send(set("a", "x"))
				expect(t, c, "a 1")
				s.files.Arm(test.fault)
				c.send(get("b"), set("c", "y"), set("d", "z"))
				expect(t, c, "b 503", "c 503", "d 503")
				if hit := s.files.Hit(); hit != "write" {
					t.Fatalf("the fault hit a %q", hit)
				}
				if diff := cmp.Diff([]string{"a"}, s.journaled()); diff != "" {
					t.Errorf("journal (-want +got):\n%s", diff)
				}
				d.send(get("e"))
				expect(t, d, `e "x"`)
				c.send(set("f", "w"), get("g"))
				expect(t, c, "f 2", `g "x w"`)
				checkReplay(t, s, books)
				checkNoGap(t, s)
				if err := s.end(); err != nil {
					t.Errorf("close kernel: %v", err)
				}
			})
		})
	}
}

// TestFullDisk shows a kernel whose disk stays full: commands are refused in every domain, questions are answered as
// ever but without a proof, and when there is room again everything goes on from the state before.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := newLibrary()
		s := startWith(t, books.domains())
		c := s.connect()
		c.send(set("a", "x"), spawn("b", "s"))
		expect(t, c, "a 1", "b 1")

		s.room.full(syscall.ENOSPC)
		for range 3 {
			c.send(set("c", "y"), spawn("d", "t"), grant("e", 7), get("f"), processes("g"))
			expect(t, c, "c 503", "d 503", "e 503", `f "x"`, `g "s"`)
		}
		c.send(ping("h", "1"))
		synctest.Wait()
		if line := string(c.link.out.drain()); !strings.Contains(line, `"causation":"h"`) || strings.Contains(line, `"kernel":`) {
			t.Errorf("answer without an entry: %s, want no proof in it", line)
		}
		if s.room.refused() == 0 {
			t.Error("the disk was never full")
		}
		if why := askMetrics(t, c).Refusing; why != syscall.ENOSPC.Error() {
			t.Errorf("it says %q of why it refuses commands, want what the disk says", why)
		}
		if diff := cmp.Diff([]string{"a", "b"}, s.journaled()); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}

		s.room.free()
		c.send(get("i"))
		synctest.Wait()
		if line := string(c.link.out.drain()); !strings.Contains(line, `"data":"x"`) || !strings.Contains(line, `"kernel":{"seq":3,`) {
			t.Errorf("first answer after there is room: %s, want its proof", line)
		}
		c.send(set("j", "y"), spawn("k", "t"), get("l"))
		expect(t, c, "j 2", "k 2", `l "x y"`)
		if why := askMetrics(t, c).Refusing; why != "" {
			t.Errorf("it says %q of why it refuses commands, and does not", why)
		}
		checkReplay(t, s, books)
		checkNoGap(t, s)
		log := s.log.String()
		for _, words := range []string{"journal cannot be written", "journal can be written again"} {
			if n := strings.Count(log, words); n != 1 {
				t.Errorf("%q was logged %d times, want once", words, n)
			}
		}
		if err := s.end(); err != nil {
			t.Errorf("close kernel: %v", err)
		}
	})
}

// TestRoomIsFound shows that commands alone find out that there is room again: the first may be refused, not the next.
func TestRoomIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := newLibrary()
		s := startWith(t, books.domains())
		c := s.connect()
		s.room.full(syscall.ENOSPC)
		c.send(set("a", "x"))
		expect(t, c, "a 503")
		s.room.free()
		c.send(set("b", "y"))
		synctest.Wait()
		c.pending()
		c.send(set("c", "z"))
		synctest.Wait()
		if got := c.pending(); len(got) != 1 || got[0].Kind != schema.KindReply {
			t.Errorf("answers %v, want a reply", show(got))
		}
		checkReplay(t, s, books)
	})
}

// TestLostTogether has batches of several connections share a write that fails: none of their calls happened, and a
// query that had seen one of them does not say so.
func TestLostTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := newLibrary()
		s := startWith(t, books.domains())
		writing := make(chan struct{})
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Write && strings.HasSuffix(op.Path, ".ndjson") {
				<-writing
			}
		}
		a, b, c, d := s.connect(), s.connect(), s.connect(), s.connect()
		a.send(set("a", "x"))
		synctest.Wait() // the audit log is writing it, and the others queue up
		b.send(set("b", "y"))
		synctest.Wait()
		c.send(spawn("c", "s"))
		d.send(get("d"))
		synctest.Wait()
		s.room.full(syscall.ENOSPC)
		close(writing)
		expect(t, a, "a 1")
		expect(t, b, "b 503")
		expect(t, c, "c 503")
		expect(t, d, "d 503")
		s.room.free()
		d.send(get("e"), processes("f"), set("g", "z"))
		expect(t, d, `e "x"`, `f ""`, "g 2")
		if diff := cmp.Diff([]string{"a", "e", "f", "g"}, s.journaled()); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}
		checkReplay(t, s, books)
	})
}

// TestLostGrantOpensNothing shows that nobody makes use of a grant whose entry was lost, while the registry is still
// making its state anew: the grant's caller was told that it never happened.
func TestLostGrantOpensNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := newLibrary()
		registry := &publisher{book: books[schema.Capability]}
		domains := books.domains()
		domains[schema.Capability] = registry
		s := startWith(t, domains)
		registry.view = s.tokens
		registry.Publish()
		restoring := make(chan struct{})
		s.restoring = func(name schema.Domain) {
			if name == schema.Capability {
				<-restoring
			}
		}
		operator := s.connect()
		agent := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		s.room.full(syscall.ENOSPC)
		operator.send(grant("a", 7))
		synctest.Wait()
		s.room.free()
		operator2 := s.connect()
		operator2.send(ping("b", "1")) // finds out that there is room
		synctest.Wait()
		agent.send(set("c", "x"))
		synctest.Wait()
		close(restoring)
		expect(t, operator, "a 503")
		if pages := books[schema.Memory].read(); len(pages) != 0 {
			t.Errorf("an agent without a token wrote %v", pages)
		}
		if got := agent.pending(); len(got) != 1 || got[0].Kind != schema.KindError {
			t.Errorf("answers %v, want a refusal", show(got))
		}
		agent.send(set("d", "x"))
		expect(t, agent, "d 403")
		operator.send(grant("e", 7))
		expect(t, operator, "e 1")
		agent.send(set("f", "x"))
		expect(t, agent, "f 1")
	})
}

// publisher is a book whose commands give tokens, which others see once they are published.
type publisher struct {
	*book

	view *tokens
}

func (p *publisher) Publish() {
	held := map[int64]*kernel.Token{}
	for _, page := range p.read() {
		if page == "grant-7" {
			held[7] = allowed(7, "*")
		}
	}
	p.view.mu.Lock()
	defer p.view.mu.Unlock()
	p.view.held = held
}

// checkReplay compares the state with the one that the next start would make.
func checkReplay(t testing.TB, s *system, books library) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(s.replayed(), books.pages()); diff != "" {
		t.Errorf("state (-replayed +running):\n%s", diff)
	}
}

// checkNoGap checks that the entries are numbered from 1 on.
func checkNoGap(t testing.TB, s *system) {
	t.Helper()
	for i, e := range s.entries() {
		if e.Seq != uint64(i+1) {
			t.Errorf("entry %d has seq %d", i+1, e.Seq)
		}
	}
}
