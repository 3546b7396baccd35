package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// fetches is a domain whose effects do what their URL says: hold waits until the test releases it or its caller leaves;
// late is refused then; fail is an error; denied and quota are refusals; refused is one before anything starts; panic
// panics; junk is not JSON. All others are answered with the URL.
type fetches struct {
	kernel.Stateless
	released chan struct{}

	mu   sync.Mutex
	runs []string
}

func newFetches() *fetches { return &fetches{released: make(chan struct{})} }

func (f *fetches) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.HTTPFetchInput:
		if in.URL == "refused" {
			return kernel.Result{}, fault.CapabilityDenied.New("not begun")
		}
		return begin(in), nil
	case *schema.EffectEnd:
		data, err := kernel.End(call, in)
		return kernel.Result{Data: data}, err
	}
	return kernel.Result{Data: []byte(`{"success":true}`)}, nil
}

func (f *fetches) Apply(*kernel.Call) {}

func (f *fetches) run(ctx context.Context, job *kernel.Job) ([]byte, error) {
	url := job.Do.(*schema.HTTPFetchInput).URL
	f.mu.Lock()
	f.runs = append(f.runs, url)
	f.mu.Unlock()
	switch url {
	case "hold", "late":
		select {
		case <-f.released:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if url == "late" {
			return nil, fault.CapabilityDenied.New("not after all")
		}
	case "fail":
		return nil, fmt.Errorf("fetch: %w", fault.HTTPUpstream.New("no luck"))
	case "denied":
		return nil, fault.CapabilityDenied.New("not there")
	case "quota":
		return nil, fault.ResourceQuota.New("no more")
	case "panic":
		panic(internals)
	case "junk":
		return []byte("{"), nil
	}
	return schema.AppendString(nil, url), nil
}

// count returns how many effects have started.
func (f *fetches) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs)
}

func fetchOf(id, url string) string {
	return frame(schema.OsMessage, schema.KindCommand, "Http.Fetch", `{"url":"`+url+`"}`, id)
}

func startFetches(t *testing.T) (*system, *fetches) {
	t.Helper()
	f := newFetches()
	return startWith(t, map[schema.Domain]kernel.Domain{schema.Http: f}), f
}

// again starts a kernel from the disk of s, including recovery.
func (s *system) again(keys *idempotency.Keys) (*system, *fetches) {
	s.t.Helper()
	if err := s.end(); err != nil {
		s.t.Errorf("close kernel: %v", err)
	}
	f := newFetches()
	domains := map[schema.Domain]kernel.Domain{schema.Http: f}
	if keys == nil {
		keys = idempotency.New()
		r := journal.NewReader(s.disk, "/journal", journal.ReaderOptions{})
		if err := record.Replay(context.Background(), r, domains, nil, keys.Recall); err != nil {
			s.t.Fatalf("replay: %v", err)
		}
		_ = r.Close()
	}
	next := startOn(s.t, s.disk, domains, keys, textLog)
	next.kernel.Recover(nil)
	return next, f
}

// says fails the test unless the next answer of c is to id, with the given code and all of the words; code "" is a reply.
func says(t *testing.T, c *client, id, code string, words ...string) {
	t.Helper()
	a := c.next()
	all := a.Text + string(a.Data)
	for _, word := range words {
		if !strings.Contains(all, word) {
			t.Errorf("%s: %s, want %s", a, all, word)
		}
	}
	if a.Meta.Causation != id || a.Code != code {
		t.Errorf("answer to %s: %s %s %s, want one to %s with code %q", a.Meta.Causation, a.Code, a.Text, a.Data, id, code)
	}
}

// TestEffect shows that a call with an effect is answered with its outcome, in order, and that a replay runs no effect.
func TestEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startFetches(t)
		c := s.connect()
		c.send(fetchOf("1", "a"), fetchOf("2", "fail"), fetchOf("3", "panic"), fetchOf("4", "junk"), fetchOf("5", "b"))
		says(t, c, "1", "", `"a"`)
		says(t, c, "2", "502", "no luck")
		says(t, c, "3", "500")
		says(t, c, "4", "500")
		says(t, c, "5", "", `"b"`)
		if f.count() != 5 {
			t.Errorf("began %v", f.runs)
		}
		if log := s.log.String(); !strings.Contains(log, internals) {
			t.Error("the panic is not in the log")
		}
		_, f = s.again(nil)
		synctest.Wait()
		if f.count() != 0 {
			t.Errorf("the next start began %v", f.runs)
		}
	})
}

// TestEffectHoldsUpNobody shows that a call that waits for an effect delays only later frames of its connection.
func TestEffectHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startFetches(t)
		c, d := s.connect(), s.connect()
		c.send(fetchOf("1", "hold"), fetchOf("2", "b"))
		synctest.Wait()
		d.send(fetchOf("3", "c"))
		says(t, d, "3", "", `"c"`)
		expectNothing(t, c)
		close(f.released)
		says(t, c, "1", "", `"hold"`)
		says(t, c, "2", "", `"b"`)
	})
}

// TestEffectOfWhoHasGone shows that the effect of a peer that has disconnected is cancelled, also if that has sent more
// frames than fit the window. The frames still take effect.
func TestEffectOfWhoHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startFetches(t)
		c := s.connect()
		frames := []string{fetchOf("1", "hold")}
		for i := range 2 * actors.WindowFrames {
			frames = append(frames, fetchOf(fmt.Sprint(i+2), "refused"))
		}
		c.send(append(frames, fetchOf("last", "a"))...)
		synctest.Wait()
		_ = c.link.Close()
		<-c.done
		if f.count() != 1 {
			t.Errorf("began %v", f.runs)
		}
		entries := 0
		for _, text := range s.disk.Image() {
			entries += strings.Count(string(text), `"url":"refused"`)
		}
		if want := 2 * actors.WindowFrames; entries != want {
			t.Errorf("the journal has %d requests, want %d", entries, want)
		}
	})
}

// TestEffectWithoutIntent shows that no effect starts before its intent is on disk.
func TestEffectWithoutIntent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startFetches(t)
		c := s.connect()
		s.room.full(syscall.ENOSPC)
		c.send(keyed("k", fetchOf("1", "a")))
		says(t, c, "1", "503")
		s.room.free()
		if f.count() != 0 {
			t.Errorf("began %v", f.runs)
		}
		c.send(fetchOf("2", "b"))
		_ = c.next() // the first write shows that there is room
		c.send(keyed("k", fetchOf("3", "a")))
		says(t, c, "3", "", `"a"`)
	})
}

// TestLostOutcome: an outcome that cannot be journaled is unknown, for the caller, for the key, and in the journal at the
// next start. The effect is not repeated.
func TestLostOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startFetches(t)
		c := s.connect()
		c.send(keyed("k", fetchOf("1", "hold")))
		synctest.Wait()
		s.room.full(syscall.ENOSPC)
		close(f.released)
		says(t, c, "1", "503", "counts as unknown")
		s.room.free()
		c.send(fetchOf("2", "b"))
		_ = c.next()
		c.send(keyed("k", fetchOf("3", "hold")))
		says(t, c, "3", "500", "outcome unknown")
		next, f := s.again(nil)
		d := next.connect()
		d.send(keyed("k", fetchOf("4", "hold")))
		says(t, d, "4", "500", "outcome unknown")
		if f.count() != 0 {
			t.Errorf("began %v", f.runs)
		}
	})
}

// TestOpenIntent shows that an intent without an outcome gets one at the next start, and only then, whether that reads the
// journal or a snapshot.
func TestOpenIntent(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"journal", "snapshot"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFetches()
				keys := idempotency.New()
				s := startOn(t, faultfs.NewDisk(), map[schema.Domain]kernel.Domain{schema.Http: f}, keys, textLog)
				c := s.connect()
				c.send(keyed("k", fetchOf("1", "hold")))
				synctest.Wait()
				before := faultfs.FromImage(s.disk.Image())
				write := keys.Snapshot()
				restored := idempotency.New()
				if err := write(func(chunk []byte) error { return restored.Restore(chunk) }); err != nil {
					t.Fatal(err)
				}
				close(f.released)
				says(t, c, "1", "", "hold")
				s.endCleanly()
				s.disk = before // as if it had died then
				if from == "journal" {
					restored = nil
				}
				for range 2 {
					next, f := s.again(restored)
					d := next.connect()
					d.send(keyed("k", fetchOf("2", "hold")))
					says(t, d, "2", "500", "outcome unknown")
					d.send(keyed("k", fetchOf("3", "other")))
					says(t, d, "3", "409", "another message")
					if f.count() != 0 {
						t.Errorf("began %v", f.runs)
					}
					s, restored = next, nil
				}
				s.endCleanly()
				n := 0
				for _, text := range s.disk.Image() {
					n += strings.Count(string(text), `"type":"Http.Fetched"`)
				}
				if n != 1 {
					t.Errorf("the journal has %d outcomes", n)
				}
			})
		})
	}
}

// TestTurns shows that one process does not take all turns, and that a call whose wait for a turn times out has started
// nothing and releases its key.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startFetches(t)
		for i := range 16 {
			s.connect().send(fetchOf(fmt.Sprint(i), "hold"))
		}
		synctest.Wait()
		c := s.connect()
		c.send(keyed("k", fetchOf("late", "hold")))
		synctest.Wait()
		if f.count() != 16 {
			t.Errorf("%d effects have started", f.count())
		}
		other := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		other.send(fetchOf("other", "b"))
		says(t, other, "other", "", `"b"`)
		_ = c.link.Close()
		<-c.done
		close(f.released)
		synctest.Wait()
		d := s.connect()
		d.send(keyed("k", fetchOf("again", "hold")))
		says(t, d, "again", "", `"hold"`)
		if f.count() != 18 {
			t.Errorf("%d effects have started", f.count())
		}
	})
}

// TestTurnsOfTheOperator shows that effects of agents that take all turns delay another agent's, and not the operator's.
func TestTurnsOfTheOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startFetches(t)
		for pid := range int64(4) {
			for i := range 16 {
				s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), pid+1).send(fetchOf(fmt.Sprint(i), "hold"))
			}
		}
		s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7).send(fetchOf("waits", "hold"))
		synctest.Wait()
		if f.count() != 64 {
			t.Errorf("%d effects have started", f.count())
		}
		c := s.connect()
		c.send(fetchOf("1", "b"))
		says(t, c, "1", "", `"b"`)
		close(f.released)
	})
}

// TestEffectsEnd shows that the end of the kernel cancels effects, and that their callers get an error.
func TestEffectsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startFetches(t)
		c := s.connect()
		c.send(fetchOf("1", "hold"))
		synctest.Wait()
		s.kernel.StopPrograms(t.Context())
		says(t, c, "1", "503", "shutting down")
		c.send(fetchOf("2", "a"))
		says(t, c, "2", "503", "shutting down")
	})
}

// begin returns the result of an intent.
func begin(do any) kernel.Result {
	return kernel.Result{Data: []byte(`{"begun":true}`), Effect: &kernel.Work{Run: do}}
}
