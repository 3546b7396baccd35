package soak_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/process"
)

// mostMemory is how many bytes the daemon's resident memory may grow by. Go's collector lets garbage grow to the size of the
// live heap, and returns pages late: a leak of 16 bytes a call is detected from about a million calls on.
func mostMemory(calls int64) int { return 16<<20 + 2*int(mostGrowth(calls)) }

// TestSoakDaemon makes the calls to the real daemon, which is stopped in between, and once killed during them. It checks
// that the descriptors are as at the beginning, and that the memory is within the bound.
func TestSoakDaemon(t *testing.T) {
	beside(t)
	p := newPlace(t)
	d := p.launch(t)
	idle := d.sockets(t) // nobody has connected yet
	all := crew(t, p)
	fill(t, p)
	d.Stop(t)
	d = p.launch(t)
	live(t, p, process.Recent)
	work(t, all, calls()/10)
	each(t, all, (*agent).settle)
	testkit.Eventually(t, "the end of the connections", func() bool { return d.sockets(t) <= idle })
	first := d.footprint(t, 0)
	t.Logf("in the beginning: %v", first)
	from, until := made(all), made(all)
	for i, share := range shares {
		switch i {
		case 0:
		case 2:
			killed(t, all, d)
			d = p.launch(t)
			orphans(t, p)
			each(t, all, (*agent).settle) // completes interrupted scenes
		default:
			d.Stop(t)
			d = p.launch(t)
		}
		until = max(until, made(all)) + share*calls()/10
		work(t, all, until)
		each(t, all, (*agent).settle)
		now := d.footprint(t, first.descriptors)
		t.Logf("after %d calls: %v", made(all)-from, now)
		if grown, most := now.memory-first.memory, mostMemory(made(all)-from); now.descriptors != first.descriptors || grown > most {
			t.Errorf("%v, then %v: want the same descriptors, and at most %d KiB more memory", first, now, most>>10)
		}
	}
	d.Stop(t)
	t.Logf("journal of %s", p.verify(t))
}

// killed kills the daemon while the agents make calls, and checks the answers until then.
func killed(t *testing.T, all []*agent, d *program) {
	t.Helper()
	var dead sync.WaitGroup
	enough := made(all) + calls()/20
	dead.Go(func() {
		for made(all) < enough-calls()/40 { // in the middle of it
			runtime.Gosched()
		}
		d.Kill(t)
	})
	each(t, all, func(a *agent) error {
		err := a.work(enough)
		if wrong := new(wrongError); errors.As(err, &wrong) {
			return err
		}
		return nil // the connection broke
	})
	dead.Wait()
}

// orphans terminates the children that a killed daemon had spawned without the answer reaching the agent.
func orphans(t *testing.T, p *place) {
	t.Helper()
	c, err := p.dial()
	testkit.Must(t, err)
	defer c.end(nil)
	var list struct {
		Processes []struct {
			PID     int64  `json:"pid"`
			AgentID string `json:"agent_id"`
		} `json:"processes"`
	}
	testkit.Must(t, c.call("Process.List", `{"state":"READY"}`, &list))
	for _, child := range list.Processes {
		if child.AgentID == "child" {
			if err := c.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, child.PID), nil); err != nil {
				t.Error(err)
			}
		}
	}
}
