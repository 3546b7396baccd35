package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// keyed returns the frame with an idempotency key.
func keyed(key, line string) string {
	m, fault := schema.Decode([]byte(line), schema.OsMessage)
	if fault != nil {
		panic(fault)
	}
	m.Meta.IdempotencyKey = key
	return strings.TrimSuffix(string(schema.AppendMessage(nil, &m)), "\n")
}

// startKeyed starts recorders whose memory refuses keys that begin with the code to answer: 403, 409, 429, 500 or 503.
func startKeyed(t *testing.T) (*system, recorders) {
	t.Helper()
	states := newRecorders()
	states[schema.Memory].decide = refusing
	return startWith(t, states.domains()), states
}

func refusing(call *kernel.Call, applied []string) (kernel.Result, bool, error) {
	in, ok := call.Input.(*schema.MemorySetInput)
	if !ok {
		return kernel.Result{}, false, nil
	}
	classes := map[string]fault.Kind{
		"403": fault.Forbidden, "409": fault.Conflict, "429": fault.QuotaExceeded, "500": fault.Internal, "503": fault.Unavailable,
	}
	if class, ok := classes[in.Key]; ok {
		return kernel.Result{}, true, &fault.Fault{Kind: class, Message: fmt.Sprintf("refused after %d", len(applied))}
	}
	return kernel.Result{}, false, nil
}

// TestKeyedCommandRunsOnce shows that a second command with the same key gets exactly the first outcome, if that is final;
// otherwise it runs.
func TestKeyedCommandRunsOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name          string
		first, second string
		want          []string // the answers to the first, to a command without a key, and to the second
		applied       []string
	}{
		{"a reply", set("1", "x"), set("2", "x"), []string{"1 1", "other 2", "2 1"}, []string{"x", "other"}},
		{"an error", set("1", "409"), set("2", "409"), []string{"1 409 refused after 0", "other 1", "2 409 refused after 0"}, []string{"other"}},
		{"a quota's refusal is none", set("1", "429"), set("2", "429"), []string{"1 429 refused after 0", "other 1", "2 429 refused after 1"}, []string{"other"}},
		{"a denial is none", set("1", "403"), set("2", "403"), []string{"1 403 refused after 0", "other 1", "2 403 refused after 1"}, []string{"other"}},
		{"a failure is none", set("1", "500"), set("2", "500"), []string{"1 500 refused after 0", "other 1", "2 500 refused after 1"}, []string{"other"}},
		{"unavailable is none", set("1", "503"), set("2", "503"), []string{"1 503 refused after 0", "other 1", "2 503 refused after 1"}, []string{"other"}},
		{"another body", set("1", "x"), set("2", "y"), []string{"1 1", "other 2", `2 409 idempotency key "k" was used for another message: take a new key`}, []string{"x", "other"}},
		{"another type", set("1", "x"), spawn("2", "x"), []string{"1 1", "other 2", `2 409 idempotency key "k" was used for another message: take a new key`}, []string{"x", "other"}},
		{"queries have no key", get("1"), get("2"), []string{`1 ""`, "other 1", `2 "other"`}, []string{"other"}},
		{"a query is no first", get("1"), set("2", "x"), []string{`1 ""`, "other 1", "2 2"}, []string{"other", "x"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, states := startKeyed(t)
				c, d := s.connect(), s.connect()
				c.send(keyed("k", test.first), set("other", "other"))
				synctest.Wait()
				d.send(keyed("k", test.second)) // of the same caller, on another connection
				synctest.Wait()
				var got []string
				for _, a := range append(c.pending(), d.pending()...) {
					got = append(got, strings.TrimSpace(a.String()+" "+a.Text))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.applied, states.applied()[schema.Memory]); diff != "" {
					t.Errorf("applied (-want +got):\n%s", diff)
				}
				checkReplay(t, s, states)
			})
		})
	}
}

// TestKeysInOneBatch shows that a repetition in the same batch as the first call is handled like others.
func TestKeysInOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, states := startKeyed(t)
		c := s.connect()
		c.send(keyed("k", set("1", "x")), keyed("k", set("2", "x")), keyed("k", set("3", "y")), keyed("k", set("4", "x")))
		expect(t, c, "1 1", "2 1", "3 409", "4 1")
		checkReplay(t, s, states)
	})
}

// TestConflictKeepsTheFirst shows that the first outcome under a key stays, also if other calls use the key.
func TestConflictKeepsTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startKeyed(t)
		s.tokens.held = map[int64]*kernel.Token{7: allowed(7, "*")}
		c := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		ahead := command("3", "Memory.Set", `{"key":"x","value":1,"tick":9}`)
		c.send(keyed("k", set("1", "x")), keyed("k", set("2", "y")), keyed("k", ahead), keyed("k", get("4")))
		expect(t, c, "1 1", "2 409", "3 422", `4 "x"`)
		s.tokens.set(7, nil)
		c.send(keyed("k", set("5", "x")))
		expect(t, c, "5 403")
		s.tokens.set(7, allowed(7, "*"))
		c.send(keyed("k", set("6", "x")))
		expect(t, c, "6 1")
	})
}

// TestKeysOfCallers shows that equal keys of different callers are independent.
func TestKeysOfCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startKeyed(t)
		operator := s.connect()
		seven := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		eight := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 8)
		for n, c := range []*client{operator, seven, eight} {
			c.send(keyed("k", set("1", fmt.Sprint("x", n))), keyed("k", set("2", fmt.Sprint("x", n))))
			expect(t, c, fmt.Sprint("1 ", n+1), fmt.Sprint("2 ", n+1))
		}
	})
}

// TestRepetitionIsJournaled shows that a repetition has an entry that refers to the first, and that replaying it runs
// nothing.
func TestRepetitionIsJournaled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, states := startKeyed(t)
		c := s.connect()
		c.send(set("1", "a"), keyed("k", get("2")), keyed("k", set("3", "x")), keyed("k", set("4", "x")))
		synctest.Wait()
		c.send(keyed("k", set("5", "x")), keyed("e", set("6", "409")), keyed("e", set("7", "409")))
		expect(t, c, "1 1", `2 "a"`, "3 2", "4 2", "5 2", "6 409", "7 409")
		want := []string{
			`{"kind":"reply","data":1}`,
			`{"kind":"reply"}`,
			`{"kind":"reply","data":2}`,
			`{"kind":"reply","data":2,"repeats":3}`,
			`{"kind":"reply","data":2,"repeats":3}`,
			`{"kind":"error","data":{"code":409,"message":"refused after 2"}}`,
			`{"kind":"error","data":{"code":409,"message":"refused after 2"},"repeats":6}`,
		}
		var got []string
		for _, e := range s.entries() {
			got = append(got, e.Outcome)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		checkReplay(t, s, states)
	})
}

// TestKeysSurviveRestart shows that keys are rebuilt from the journal with their outcomes, and that other entries in it do
// not remove any.
func TestKeysSurviveRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startKeyed(t)
		c := s.connect()
		c.send(keyed("k", set("1", "x")), keyed("e", set("2", "409")), keyed("d", set("3", "403")), keyed("f", set("4", "500")))
		c.send(keyed("k", set("5", "other")), keyed("k", get("6")), keyed("k", set("7", "x")))
		expect(t, c, "1 1", "2 409", "3 403", "4 500", "5 409", `6 "x"`, "7 1")
		next, states := s.restart()
		states[schema.Memory].decide = refusing
		d := next.connect()
		d.send(set("a", "y"), keyed("k", set("b", "x")), keyed("k", set("c", "other")))
		d.send(keyed("e", set("d", "409")), keyed("d", set("e", "z")), keyed("f", set("f", "500")))
		expect(t, d, "a 2", "b 1", "c 409", "d 409", "e 3", "f 500")
		if e := next.entries(); !strings.Contains(e[8].Outcome, `"repeats":1}`) {
			t.Errorf("entry of the repetition: %s", e[8].Outcome)
		}
		checkReplay(t, next, states)
	})
}

// TestKeysExpire shows that a key is valid for exactly 24 hours from its first use, whatever happens to other keys.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, states := startKeyed(t)
		c := s.connect()
		c.send(keyed("first", set("0", "w")), keyed("failed", set("1", "500")))
		time.Sleep(time.Minute)
		c.send(keyed("k", set("2", "x")))
		time.Sleep(time.Minute)
		c.send(keyed("failed", set("3", "y"))) // the key is used a second time, since the first call failed
		expect(t, c, "0 1", "1 500", "2 2", "3 3")
		time.Sleep(24*time.Hour - time.Minute - time.Millisecond)
		c.send(keyed("k", set("4", "x")))
		expect(t, c, "4 2")
		time.Sleep(time.Millisecond)
		c.send(keyed("k", set("5", "x")))
		expect(t, c, "5 4")
		c.send(keyed("failed", set("6", "y")))
		expect(t, c, "6 3")
		time.Sleep(24 * time.Hour)
		c.send(keyed("failed", set("7", "other"))) // the first one has expired, so another body is no conflict
		expect(t, c, "7 5")
		checkReplay(t, s, states)
	})
}

// TestKeyOfWaitingCall shows that a call whose wait timed out releases its key for the next attempt.
func TestKeyOfWaitingCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startMailboxes(t)
		c := s.connect()
		c.send(keyed("k", minute("1")))
		synctest.Wait()
		_ = c.link.Close()
		<-c.done
		d := s.connect()
		d.send(keyed("k", minute("2")))
		expectNothing(t, d)
		time.Sleep(time.Minute)
		expect(t, d, `2 [""]`)
		d.send(keyed("k", minute("3")))
		expect(t, d, `3 [""]`)
	})
}

// restart ends the kernel and starts another one from its disk, as a start of the daemon does.
func (s *system) restart() (*system, recorders) {
	s.t.Helper()
	if err := s.end(); err != nil {
		s.t.Errorf("close kernel: %v", err)
	}
	states := newRecorders()
	keys := idempotency.New()
	r := journal.NewReader(s.disk, "/journal", journal.ReaderOptions{})
	if err := record.Replay(context.Background(), r, states.domains(), nil, keys.Recall); err != nil {
		s.t.Fatalf("replay: %v", err)
	}
	_ = r.Close()
	return startOn(s.t, s.disk, states.domains(), keys, textLog), states
}
