package actors_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/schema"
)

// replacing runs a Replace of the memory, and returns a function that ends its work.
func replacing(s *system, work func() (bool, error)) (finish func() error) {
	release, answer := make(chan struct{}), make(chan error, 1)
	go func() {
		answer <- s.kernel.Replace(schema.Memory, func() (bool, error) {
			<-release
			return work()
		})
	}()
	synctest.Wait()
	return func() error {
		close(release)
		return <-answer
	}
}

// TestReplace: while the state of a domain is replaced, only its calls wait; then they are decided on the new state.
func TestReplace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startWith(t, states.domains())
		c, other := s.connect(), s.connect()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		refused := errors.New("not this one")
		finish := replacing(s, func() (bool, error) {
			if _, err := s.kernel.Recorded(t.Context()); err != nil {
				return true, err
			}
			return true, errors.Join(s.restore(schema.Memory, states[schema.Memory]), refused)
		})
		c.send(set("b", "y"), get("c"))
		other.send(spawn("d", "s"))
		expect(t, other, "d 1")
		if got := c.pending(); len(got) != 0 {
			t.Errorf("answered while the state is replaced: %v", show(got))
		}
		if err := finish(); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		expect(t, c, "b 2", `c "x y"`)
		checkReplay(t, s, states)
		s.endCleanly()
	})
}

// TestReplaceHalf: if the work leaves no state, the kernel ends with its error, and no further call is decided.
func TestReplaceHalf(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func() (bool, error){
		"half": func() (bool, error) { return false, errors.New("half done") },
		"file": func() (bool, error) { return false, syscall.EMFILE }, // which is no reason to retry
		"":     func() (bool, error) { panic("half done") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := startWith(t, newRecorders().domains())
			c := s.connect()
			finish := replacing(s, work)
			c.send(set("a", "x"))
			if err := finish(); err == nil {
				t.Errorf("%s: no error", name)
			}
			expect(t, c, "a 503")
			if err := s.end(); err == nil || !strings.Contains(err.Error(), "replace state") {
				t.Errorf("%s: close kernel: %v", name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newRecorders().domains())
		if err := s.kernel.Replace("", func() (bool, error) { return false, errors.New("half done") }); err == nil {
			t.Error("Replace of all domains: no error")
		}
		if err := s.end(); err == nil || !strings.Contains(err.Error(), "replace state") {
			t.Errorf("Replace of all domains: close kernel: %v", err)
		}
	})
}

// TestReplaceWhileWritesFail loses entries of the journal while a state is replaced: the state is rebuilt afterwards, by
// one goroutine at a time.
func TestReplaceWhileWritesFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startWith(t, states.domains())
		c, other := s.connect(), s.connect()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		working := false
		s.restoring = func(name schema.Domain) {
			if name == schema.Memory && working {
				t.Error("two goroutines rebuild one state")
			}
		}
		finish := replacing(s, func() (bool, error) { working = false; return true, nil })
		working = true
		s.room.full(syscall.ENOSPC)
		other.send(spawn("b", "s"))
		expect(t, other, "b 503")
		s.room.free()
		c.send(set("c", "y"))
		synctest.Wait()
		if err := s.kernel.Replace(schema.Memory, func() (bool, error) { return true, nil }); err == nil {
			t.Error("a second replacement has begun")
		}
		if err := finish(); err != nil {
			t.Errorf("got %v", err)
		}
		expect(t, c, "c 503")
		c.send(get("d"), set("e", "z"), get("f"))
		expect(t, c, `d "x"`, "e 2", `f "x z"`)
		checkReplay(t, s, states)
		s.endCleanly()
	})
}
