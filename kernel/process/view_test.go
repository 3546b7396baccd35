package process_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestViewFollowsPublish: other domains see a change when it is published, the domain itself at once.
func TestViewFollowsPublish(t *testing.T) {
	t.Parallel()
	s := family(t)
	view := s.domain.Processes()
	s.journal.Apply(s.domain, s.request(kernel.Operator, "Process.Exit", `{"pids":[5],"reason":""}`), nil)
	if s.domain.Alive(5) || view.Process(5).State != "READY" {
		t.Errorf("before: alive %v, seen %+v", s.domain.Alive(5), view.Process(5))
	}
	s.domain.Publish()
	if view.Process(5).State != "TERMINATED" {
		t.Errorf("after: seen %+v", view.Process(5))
	}
	for _, pid := range []int64{-1, 0, 6, 1 << 40} {
		if p := view.Process(pid); p != nil {
			t.Errorf("pid %d: %+v", pid, p)
		}
	}
	restored := restore(t, s.domain)
	for _, pid := range s.pids() {
		if diff := cmp.Diff(view.Process(pid), restored.Processes().Process(pid)); diff != "" {
			t.Errorf("restored pid %d: %s", pid, diff)
		}
	}
	s.domain.Reset()
	if view.Process(1) == nil {
		t.Error("reset was seen before it was published")
	}
	s.domain.Publish()
	if p := view.Process(1); p != nil {
		t.Errorf("after reset: %+v", p)
	}
	if next := s.spawn(kernel.Operator); next != 1 {
		t.Errorf("after reset: next pid %d", next)
	}
}

// TestForgotten: the table keeps the processes that ended last; of earlier ones it knows only that they have ended.
func TestForgotten(t *testing.T) {
	t.Parallel()
	const more = 1000
	s := newShell(t)
	spawnMany(t, s.domain, process.Remembered+more, func(int64) int64 { return 0 })
	for pid := int64(1); pid <= process.Remembered+more; pid++ {
		if pid == 300 {
			continue // it lives among ended ones
		}
		s.domain.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: &schema.ProcessExitInput{PIDs: []int64{pid}}}, Decision: kernel.Decision{Moment: kernel.Moment{Tick: 3}}})
		s.domain.Publish()
	}
	for name, view := range map[string]*process.Processes{"live": s.domain.Processes(), "restored": restore(t, s.domain).Processes()} {
		for pid := int64(1); pid <= process.Remembered+more; pid++ {
			p := view.Process(pid)
			state, known := "TERMINATED", pid > more || pid == 300
			if pid == 300 {
				state = "READY"
			}
			if p == nil || p.State != state || (p.AgentID == "a") != known {
				t.Fatalf("%s pid %d: %+v", name, pid, p)
			}
		}
		if p := view.Process(process.Remembered + more + 1); p != nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if steps := s.terminate(7); steps != nil {
		t.Errorf("steps to end a forgotten process: %+v", steps)
	}
	// A forgotten process's origin is unknown (ABI 6.4).
	if _, err := s.run(300, "Syscall.Terminate", `{"target_pid":7}`); err == nil || err.Kind != fault.NotFound {
		t.Errorf("an agent ends a forgotten process: %v", err)
	}
	got, err := s.run(kernel.Operator, "Process.Get", `{"pid":7}`)
	want := `{"pid":7,"agent_id":"","parent_pid":0,"state":"TERMINATED","priority":"","intent":"","role":"","resource_quota":{},"birth_tick":0,"origin":""}`
	if err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	if next := s.spawn(kernel.Operator); next != process.Remembered+more+1 {
		t.Errorf("next pid %d", next)
	}
}

// TestForgottenByOrigin: which processes of an origin are forgotten does not depend on other origins, after a restore
// too.
func TestForgottenByOrigin(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	row, ok := schema.Lookup("Syscall.Spawn")
	if !ok {
		t.Fatal("no Syscall.Spawn")
	}
	live := func(d *process.Domain, pid int64, origin string) {
		d.Apply(&kernel.Call{Request: kernel.Request{Syscall: row, Input: &schema.SpawnInput{ChildAgentID: "a"}}, Decision: kernel.Decision{Origin: origin}, Outcome: kernel.Outcome{Data: []byte(`{"child_pid":1,"child_agent_id":"a"}`)}})
		d.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: &schema.ProcessExitInput{PIDs: []int64{pid}}}, Decision: kernel.Decision{Moment: kernel.Moment{Tick: 3}}})
	}
	live(s.domain, 1, "https://other.example/")
	for pid := int64(2); pid <= process.Remembered+2; pid++ { // one more than is remembered
		live(s.domain, pid, home)
	}
	restored := restore(t, s.domain)
	for name, d := range map[string]*process.Domain{"live": s.domain, "restored": restored} {
		live(d, process.Remembered+3, home)
		d.Publish()
		for pid, known := range map[int64]bool{1: true, 2: false, 3: false, 4: true} {
			if p := d.Processes().Process(pid); p == nil || (p.AgentID == "a") != known {
				t.Errorf("%s pid %d: %+v, want it known: %v", name, pid, p, known)
			}
		}
	}
}

// TestForgottenAtPageEnd: a page of the view without remembered processes is dropped, except the page of the next
// process.
func TestForgottenAtPageEnd(t *testing.T) {
	t.Parallel()
	const page = 256
	s := newShell(t)
	const spawned = (process.Remembered/page+2)*page - 1
	spawnMany(t, s.domain, spawned, func(int64) int64 { return 0 })
	for pid := int64(1); pid < process.Remembered+page; pid++ {
		s.domain.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: &schema.ProcessExitInput{PIDs: []int64{pid}}}})
		s.domain.Publish()
	}
	if next := s.spawn(kernel.Operator); next != spawned+1 || s.get(next).State != "READY" {
		t.Errorf("next pid %d: %+v", next, s.get(next))
	}
}

// TestViewUnderChange: readers never find a gap, nor an ended process alive again. The race detector checks it.
func TestViewUnderChange(t *testing.T) {
	t.Parallel()
	d := process.New(nil)
	view := d.Processes()
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			ended := map[int64]bool{}
			for last := int64(0); ; {
				for pid := int64(1); ; pid++ {
					p := view.Process(pid)
					if p == nil {
						if pid <= last {
							t.Errorf("pid %d is missing, although %d was seen", pid, last)
						}
						break
					}
					last = max(last, pid)
					if ended[pid] && p.State != "TERMINATED" {
						t.Errorf("pid %d is alive again", pid)
					}
					ended[pid] = p.State == "TERMINATED"
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for pid := int64(1); pid <= 2000; pid++ {
		d.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.SyscallSpawn.Syscall, Input: &schema.SpawnInput{ChildAgentID: "a"}}, Outcome: kernel.Outcome{Data: []byte(`{"child_pid":1,"child_agent_id":"a"}`)}})
		if pid%3 == 0 {
			d.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: &schema.ProcessExitInput{PIDs: []int64{pid / 3}}}})
		}
		d.Publish()
	}
	close(stop)
	readers.Wait()
}
