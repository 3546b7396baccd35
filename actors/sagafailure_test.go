package actors_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestStepFails shows that a call whose step fails also fails, and is not applied; later calls are.
func TestStepFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		domain schema.Domain
		step   string
		err    error
		code   string
	}{
		{"elsewhere", schema.Ipc, "Ipc.Open", fault.MemoryChanged.New("refused"), "409"},
		{"its own", schema.Process, "Process.Prepare", fault.MemoryChanged.New("refused"), "409"},
		{"a panic", schema.Capability, "Capability.Endow", nil, "500"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				states := newRecorders()
				spawning(states)
				broken := true
				usual := states[test.domain].decide
				states[test.domain].decide = func(call *kernel.Call, applied []string) (kernel.Result, bool, error) {
					if broken && call.Syscall.Type == test.step {
						if test.err == nil {
							panic(internals)
						}
						return kernel.Result{}, true, test.err
					}
					if usual != nil {
						return usual(call, applied)
					}
					return kernel.Result{}, false, nil
				}
				s := startWith(t, states.domains())
				c := s.connect()
				c.send(spawn("a", "one"))
				expect(t, c, "a "+test.code)
				synctest.Wait() // until the states are rebuilt
				if applied := states[schema.Process].read(); slices.Contains(applied, "one") {
					t.Errorf("applied though a step failed: %v", applied)
				}
				failed := slices.IndexFunc(s.entries(), func(e entry) bool { return e.Type == test.step })
				last := s.entries()[len(s.entries())-1]
				if failed < 0 || last.ID != "a" || !strings.Contains(last.Outcome, `"kind":"error"`) {
					t.Errorf("journal: %v, want the failed step and the failed call", s.entries())
				}
				broken = false
				c.send(spawn("b", "two"))
				expect(t, c, "b {}")
				checkReplay(t, s, states)
				s.endCleanly()
			})
		})
	}
}

// TestStepIsLost loses the entry of a step because the disk is full: its call did not happen either, at whatever point it
// was.
func TestStepIsLost(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"Process.Prepare", "Capability.Endow", "Ipc.Open", "Syscall.Spawn"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				states := newRecorders()
				spawning(states)
				s := startWith(t, states.domains())
				s.room.fullOnce(syscall.ENOSPC, `"type":"`+step+`"`) // in a separate write, or with the step before
				c := s.connect()
				c.send(spawn("a", "one"))
				if got := string(c.next().Data); !strings.Contains(got, `"code":503`) || !strings.Contains(got, "a part of it may be done") {
					t.Errorf("answered %s, want 503 with \"a part of it may be done\"", got)
				}
				if s.room.refused() != 1 {
					t.Fatalf("%d writes failed, want one", s.room.refused())
				}
				synctest.Wait() // until the states are rebuilt
				if applied := states[schema.Process].read(); slices.Contains(applied, "one") {
					t.Errorf("applied though a step was lost: %v", applied)
				}
				checkReplay(t, s, states)
				c.send(ping("b", "1"), set("c", "x"))
				expect(t, c, `b ""`, "c 1")
				checkReplay(t, s, states)
			})
		})
	}
}

// TestStepHeldOverLoss makes a step wait for its domain, whose state is rebuilt, while the journal loses the earlier steps:
// it is not made.
func TestStepHeldOverLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		spawning(states)
		s := startWith(t, states.domains())
		release := make(chan struct{})
		s.restoring = func(name schema.Domain) {
			if name == schema.Ipc {
				<-release
			}
		}
		a, b := s.connect(), s.connect()
		s.room.fullOnce(syscall.ENOSPC, `"id":"a"`)
		a.send(set("a", "x"))
		expect(t, a, "a 503")
		a.send(get("a2")) // commands are accepted again
		expect(t, a, `a2 ""`)
		s.room.fullOnce(syscall.ENOSPC, `"type":"Capability.Endow"`)
		b.send(spawn("b", "one")) // its last step waits
		synctest.Wait()
		close(release)
		if got := string(b.next().Data); !strings.Contains(got, `"code":503`) {
			t.Errorf("answered %s, want 503", got)
		}
		synctest.Wait()
		if applied := states[schema.Ipc].read(); len(applied) > 0 {
			t.Errorf("the step was made although earlier steps were lost: %v", applied)
		}
		checkReplay(t, s, states)
	})
}

// TestStepsDomainDies shows that a call is answered also if the domain of its step dies meanwhile, and that the kernel then
// ends.
func TestStepsDomainDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		spawning(states)
		states[schema.Capability].apply = func(*kernel.Call) { panic(internals) }
		s := startWith(t, states.domains())
		c, d := s.connect(), s.connect()
		c.send(spawn("a", "one"))
		synctest.Wait()
		d.send(processes("b"))
		<-s.kernel.Stopping()
		expect(t, c, "a 500")
		expect(t, d, `b "prepare-1"`)
		if err := s.end(); err == nil || !strings.Contains(err.Error(), internals) {
			t.Errorf("close kernel: %v, want the panic", err)
		}
	})
}
