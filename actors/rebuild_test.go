package actors_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/schema"
)

// TestRebuildWithoutDescriptors fails a write, and then one operation of rebuilding the states, each in turn, as in a
// process without descriptors. The kernel continues: it refuses calls until the state can be read, and loses nothing.
func TestRebuildWithoutDescriptors(t *testing.T) {
	t.Parallel()
	hit := map[bool]int{}
	for then := 3; then < 30; then++ {
		synctest.Test(t, func(t *testing.T) {
			states := newRecorders()
			s := startWith(t, states.domains())
			c := s.connect()
			c.send(set("a", "x"), spawn("b", "s"))
			expect(t, c, "a 1", "b 1")
			s.files.Arm(faultfs.Fault{N: 1, Then: then, Err: syscall.EMFILE, Short: true})
			c.send(set("c", "y"))
			c.send(get("d"))
			synctest.Wait()
			log := s.log.String()
			failed := strings.Contains(log, "state cannot be rebuilt from the journal")
			if failed {
				hit[slices.Contains(show(c.pending()), "d 503")]++
			}
			c.pending()
			time.Sleep(time.Minute) // of the fake clock
			s.files.Arm(faultfs.Fault{})
			c.send(get("e")) // the first that is recorded again
			expect(t, c, `e "x"`)
			c.send(set("f", "z"), get("g"), processes("h"))
			expect(t, c, "f 2", `g "x z"`, `h "s"`)
			checkReplay(t, s, states)
			if err := s.end(); failed && err != nil {
				t.Errorf("operation %d after the write: the kernel ended: %v", then, err)
			}
		})
	}
	// While another domain than the queried one has no state, and no registry lacks its state, there is an answer.
	if hit[true] == 0 {
		t.Errorf("%d rebuilds failed, and no call was refused", hit[false])
	}
}

// TestEndWithoutState ends a kernel whose state cannot be rebuilt: its error says so, so that the daemon does not save the
// state.
func TestEndWithoutState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startWith(t, states.domains())
		c := s.connect()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		s.files.Arm(faultfs.Fault{N: 1, Then: 3, Err: syscall.EMFILE})
		c.send(set("b", "y"))
		expect(t, c, "b 503")
		if err := s.end(); err == nil || !strings.Contains(err.Error(), "rebuild domain") {
			t.Errorf("close kernel: got %v, want that a domain has no state", err)
		}
	})
}

// TestRestoreBlocksNoActor rebuilds the state of a domain slowly: its actor continues, so that a client can disconnect. If
// the journal loses more meanwhile, the state is rebuilt again, by one goroutine at a time.
func TestRestoreBlocksNoActor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, states := startMailboxes(t)
		c, waiter := s.connect(), s.connect()
		waiter.send(minute("a"))
		synctest.Wait()
		var made, atOnce atomic.Int64
		release := make(chan struct{})
		s.restoring = func(name schema.Domain) {
			if name == schema.Ipc {
				made.Add(1)
				if n := atOnce.Add(1); n != 1 {
					t.Errorf("%d goroutines rebuild one state", n)
				}
				<-release
				atOnce.Add(-1)
			}
		}
		s.room.full(syscall.ENOSPC)
		c.send(set("b", "x"))
		expect(t, c, "b 503")
		_ = waiter.link.Close()
		<-waiter.done // while the state is being rebuilt
		s.room.free()
		c.send(get("d")) // all other domains continue
		expect(t, c, `d ""`)
		c.send(set("e", "y"))
		expect(t, c, "e 1")
		s.room.full(syscall.ENOSPC)
		c.send(set("f", "z"))
		expect(t, c, "f 503")
		s.room.free()
		c.send(get("g"))
		expect(t, c, `g "y"`)
		c.send(sendMsg("h", `"x"`))
		synctest.Wait()
		if len(c.pending()) != 0 || made.Load() != 1 {
			t.Errorf("%d rebuilds have begun, want 1, and no answer to the call yet", made.Load())
		}
		close(release)
		expect(t, c, "h true")
		if made.Load() != 2 {
			t.Errorf("the state was rebuilt %d times, want twice", made.Load())
		}
		checkReplay(t, s, states)
		s.endCleanly()
	})
}

// TestEndWhileRestoring ends a kernel while a state is being rebuilt: it waits for that, and its error reports whether
// there is a state.
func TestEndWhileRestoring(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			states := newRecorders()
			s := startWith(t, states.domains())
			c := s.connect()
			release := make(chan struct{})
			s.restoring = func(name schema.Domain) {
				if name != schema.Ipc {
					return
				}
				<-release
				if broken {
					panic(internals)
				}
			}
			s.room.full(syscall.ENOSPC)
			c.send(set("a", "x"))
			expect(t, c, "a 503")
			ended := make(chan error)
			go func() { ended <- s.end() }()
			synctest.Wait()
			select {
			case <-ended:
				t.Error("the kernel ended while a state was being rebuilt")
			default:
			}
			close(release)
			if err := <-ended; broken != (err != nil && strings.Contains(err.Error(), internals)) {
				t.Errorf("broken %v: close kernel: %v", broken, err)
			}
		})
	}
}
