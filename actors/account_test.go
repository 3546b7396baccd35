package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// bounded runs a kernel whose agents have bounds.
func bounded(t *testing.T, b actors.Bounds) *system {
	t.Helper()
	return startHosting(t, faultfs.NewDisk(), mount(newFake()), idempotency.New(), textLog, actors.Hosting{}, b)
}

// rate bounds the journal to the size of about a hundred calls.
var rate = actors.Bounds{InFlightBytes: 1 << 20, JournalBytesPerSecond: 64 << 10, JournalBurstBytes: 64 << 10}

// size returns about how many bytes of the journal the entries of a process take, as the bound counts them.
func (s *system) size(pid int64) (bytes int) {
	for _, e := range s.entries() {
		if e.PID == pid && e.Type != "Kernel.Throttled" {
			bytes += len(e.request) + len(e.Outcome) + 256
		}
	}
	return bytes
}

// throttled returns the counts in the notes about a process.
func (s *system) throttled(pid int64) (counts []string) {
	for _, e := range s.entries() {
		if e.PID == pid && e.Type == "Kernel.Throttled" {
			counts = append(counts, string(e.call.Data))
		}
	}
	return counts
}

// An agent fills the journal no faster than its rate, over all its connections. Further calls are answered with 429 and
// have no entry; an entry of the agent notes their number once a second. Other processes are not delayed.
func TestJournalRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bounded(t, rate)
		operator, other := s.connect(), s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 8)
		text, refused, answered := strings.Repeat("x", 1000), 0, 0
		for i := range 400 {
			c := s.seven() // each with a separate connection
			c.send(echo(fmt.Sprint(i), text))
			a := c.next()
			switch {
			case a.Kind == schema.KindReply:
				answered++
			case a.Code == "429" && strings.Contains(a.Text, "65536 bytes a second") && strings.Contains(a.Text, "try again in"):
				refused++
			default:
				t.Fatalf("got %v", a)
			}
			c.endInput()
			<-c.done
		}
		if refused == 0 || answered == 0 {
			t.Fatalf("%d answered, %d refused", answered, refused)
		}
		if got, most := s.size(7), int(rate.JournalBurstBytes)+4000; got > most {
			t.Errorf("at once it wrote %d bytes, want %d at most", got, most)
		}
		if got := s.throttled(7); got != nil {
			t.Errorf("a note was written before a second has passed: %v", got)
		}
		for _, c := range []*client{operator, other} {
			c.send(echo("a", text))
			if a := c.next(); a.Kind != schema.KindReply {
				t.Errorf("another process got %v", a)
			}
		}
		for range 10 { // seconds
			time.Sleep(time.Second) // fake time
			c := s.seven()
			for i := range 100 {
				c.send(echo(fmt.Sprint(i), text))
				if a := c.next(); a.Kind != schema.KindReply {
					refused++
				}
			}
			c.endInput()
			<-c.done
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got, most := s.size(7), int(rate.JournalBurstBytes+11*rate.JournalBytesPerSecond)+4000; got > most || got < most/2 {
			t.Errorf("in eleven seconds it wrote %d bytes, want nearly %d", got, most)
		}
		sum, notes := 0, s.throttled(7)
		for _, note := range notes {
			var pid, count int
			if _, err := fmt.Sscanf(note, `{"pid":%d,"count":%d}`, &pid, &count); err != nil || pid != 7 {
				t.Errorf("note %s: %v", note, err)
			}
			sum += count
		}
		// The note of one second may follow the first refusal of the next.
		if sum != refused || len(notes) < 5 || len(notes) > 11 {
			t.Errorf("%d calls were refused, and %d counted in %d notes", refused, sum, len(notes))
		}
	})
}

// An agent that sends garbage gets an error for each line, at a bounded rate that it is charged for. Others are not delayed.
func TestGarbageRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bounded(t, rate)
		c, operator := s.seven(), s.connect()
		const lines = 3000
		c.sendRaw(strings.Repeat("{\n", lines))
		synctest.Wait()
		first := len(c.pending())
		if first < 512 || first > 1024 {
			t.Errorf("%d of %d lines were answered at once", first, lines)
		}
		operator.sendRaw(strings.Repeat("{\n", lines))
		synctest.Wait()
		if n := len(operator.pending()); n != lines {
			t.Errorf("%d of %d lines of the operator were answered", n, lines)
		}
		time.Sleep(10 * time.Second) // fake time
		synctest.Wait()
		if n := first + len(c.pending()); n != lines {
			t.Errorf("%d of %d lines were answered in ten seconds", n, lines)
		}
		if notes := s.throttled(7); len(notes) < 3 || len(notes) > 6 {
			t.Errorf("it is charged with %v", notes)
		}
		c.send(echo("a", "x"))
		expect(t, c, `a {"echo":"x"}`)
	})
}

// A throttled call has not used its idempotency key, and a throttled call among others neither delays their answers nor
// changes their order.
func TestThrottledCallRunsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bounded(t, rate)
		c := s.seven()
		for i := 0; ; i++ {
			c.send(keyed(fmt.Sprint(i), echo(fmt.Sprint(i), strings.Repeat("x", 10_000))))
			if a := c.next(); a.Kind == schema.KindError {
				time.Sleep(10 * time.Second) // fake time
				c.send(keyed(fmt.Sprint(i), echo("again", "ran")))
				expect(t, c, `again {"echo":"ran"}`)
				return
			}
		}
	})
}

// A waiting call was admitted before, so it is not throttled when it is decided again.
func TestWaitingCallIsNotThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		mailboxes(states)
		s := startHosting(t, faultfs.NewDisk(), states.domains(), idempotency.New(), textLog, actors.Hosting{}, rate)
		waiter, flood, operator := s.seven(), s.seven(), s.connect()
		waiter.send(minute("a"))
		synctest.Wait()
		for {
			flood.send(echo("x", strings.Repeat("x", 10_000)))
			if a := flood.next(); a.Kind == schema.KindError {
				break
			}
		}
		operator.send(sendMsg("b", "1"))
		expect(t, operator, "b true")
		expect(t, waiter, `a ["Syscall.SendMsg"]`)
	})
}

// The end of the kernel records throttled calls that were not recorded yet.
func TestThrottledIsNotedAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bounded(t, rate)
		c := s.seven()
		for {
			c.send(echo("a", strings.Repeat("x", 10_000)))
			if a := c.next(); a.Kind == schema.KindError {
				break
			}
		}
		if err := s.end(); err != nil {
			t.Fatal(err)
		}
		if got := s.throttled(7); len(got) != 1 || got[0] != `{"pid":7,"count":1}` {
			t.Errorf("notes at the end: %v", got)
		}
	})
}

// All connections of an agent share its bound on bytes in flight: beyond it the kernel does not read from them. The
// operator has no such bound. When the agent reads its answers, none is missing.
func TestInFlightOfAnAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, size, connections, frames = 100_000, 10_000, 8, 20
		b := rate
		b.InFlightBytes, b.JournalBurstBytes = most, 1<<40
		s := bounded(t, b)
		payload := `"` + strings.Repeat("x", size) + `"`
		var links []*link
		var silent []*client
		for range connections {
			l := newLink(schema.OsMessage, schema.MaxLine, 1) // so that not even one answer fits
			links, silent = append(links, l), append(silent, s.serveAs(l, 7))
		}
		for i := range frames {
			for _, c := range silent {
				c.send(ping(fmt.Sprintf("%02d", i), payload))
			}
		}
		synctest.Wait()
		taken := 0
		for _, l := range links {
			taken += int(l.taken.Load())
		}
		// Each connection has one more frame, which waits for room.
		if taken > most/size+connections || taken < most/(2*size) {
			t.Errorf("%d frames were read, want %d at most", taken, most/size+connections)
		}
		operator := s.connect()
		operator.send(ping("n", payload))
		if a := operator.next(); a.Kind != schema.KindReply {
			t.Errorf("the operator got %v", a)
		}
		for i, c := range silent {
			c.endInput()
			links[i].out.widen(unbounded)
		}
		for _, c := range silent {
			if got := c.rest(); len(got) != frames {
				t.Errorf("%d answers, want %d", len(got), frames)
			}
		}
	})
}

// The kernel does not read from an agent until the next second after it has refused thousands of its calls in one.
func TestThrottledAgentIsSlowedDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bounded(t, rate)
		l := newLink(schema.OsMessage, schema.MaxLine, unbounded)
		c := s.serveAs(l, 7)
		const frames = 3 * actors.MaxThrottled
		var want []string
		for i := range frames {
			id := fmt.Sprintf("%05d", i)
			c.send(ping(id, "1"))
			want = append(want, id)
		}
		synctest.Wait()
		if got := int(l.taken.Load()); got > actors.MaxThrottled+1000 {
			t.Errorf("%d frames were read without a pause", got)
		}
		c.endInput()
		checkCauses(t, want, c.rest())
	})
}
