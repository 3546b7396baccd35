package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

// follower is the question of a Process.Subscribe.
type follower struct {
	s    *shell
	next *schema.Request
}

func (s *shell) follow(pid int64, data string) *follower {
	s.t.Helper()
	result, err := s.domain.Decide(s.request(pid, "Process.Subscribe", data))
	testkit.Must(s.t, err)
	return &follower{s: s, next: result.Lasting.Follow}
}

// news returns the next pushes as words: the event and the process.
func (f *follower) news() (words []string) {
	f.s.t.Helper()
	for {
		call := f.s.request(kernel.Operator, f.next.Row.Type, string(marshal(f.s.t, f.next.Input)))
		result, err := f.s.domain.Decide(call)
		if err != nil {
			f.s.t.Fatal(err)
		}
		if result.Wait == kernel.Forever {
			return words
		}
		for _, e := range result.Lasting.Events {
			word, _, _ := strings.Cut(strings.TrimPrefix(string(e.Data), `{"pid":`), ",")
			words = append(words, strings.TrimPrefix(e.Type, "Process.")+" "+word+e.Causation)
		}
		f.next = result.Lasting.Follow
	}
}

func marshal(t domaintest.TB, v any) []byte {
	t.Helper()
	raw, err := schema.Marshal(v)
	testkit.Must(t, err)
	return raw
}

// must runs a call that must succeed.
func (s *shell) must(pid int64, typ, data string) {
	s.t.Helper()
	if _, err := s.run(pid, typ, data); err != nil {
		s.t.Fatalf("%s %s: %v", typ, data, err)
	}
}

// own applies one of the kernel's own commands, with the given cause.
func (s *shell) own(typ, data, id, cause string) {
	s.t.Helper()
	call := s.request(kernel.Operator, typ, data)
	call.Message.Meta.ID, call.Message.Meta.Causation = id, cause
	answer := `{"success":true}`
	if typ == "Syscall.Spawn" {
		answer = `{"child_pid":1,"child_agent_id":"b"}`
	}
	s.journal.Apply(s.domain, call, []byte(answer))
}

// TestEvents: a follower gets the events of its process and the descendants from the subscription on, in order, each
// with the request that caused it.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(0, "Syscall.Spawn", `{"child_agent_id":"a","capabilities":{"allowed_syscalls":["*"]}}`)
	all, own := s.follow(0, `{}`), s.follow(1, `{}`)
	s.must(1, "Syscall.Spawn", `{"child_agent_id":"b","capabilities":{"allowed_syscalls":["*"]}}`)
	leaf := s.follow(0, `{"pid":2}`)
	s.must(0, "Syscall.Spawn", `{"child_agent_id":"c"}`)
	s.own("Process.NoteStart", `{"pid":2,"os_pid":9,"sandbox":"off","again":false}`, "i", "m-1")
	s.own("Process.NoteEnd", `{"pid":2,"reason":"exited","restart":true,"blocked_ticks":5,"faults":1,"quick":1}`, "i", "m-2")
	s.own("Process.NoteStart", `{"pid":2,"os_pid":9,"sandbox":"off","again":true}`, "i", "m-3")
	s.own("Process.NoteEnd", `{"pid":2,"reason":"exited","restart":true,"blocked_ticks":0,"faults":0,"quick":0}`, "m-4", "")
	s.own("Process.Exit", `{"pids":[1],"reason":"x"}`, "i", "m-5")
	two := []string{"Started 2m-1", "Exited 2m-2", "Blocked 2m-2", "Restarted 2m-3", "Exited 2m-4", "Terminated 2m-5"}
	for name, got := range map[string][2][]string{
		"the operator": {all.news(), append(slices.Concat([]string{"Spawned 2", "Spawned 3"}, two), "Terminated 1m-5")},
		"a parent":     {own.news(), append(slices.Concat([]string{"Spawned 2"}, two), "Terminated 1m-5")},
		"of one":       {leaf.news(), two},
		"a late one":   {s.follow(0, `{}`).news(), nil},
	} {
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%s gets %q, want %q", name, got[0], got[1])
		}
	}
	if again := all.news(); again != nil {
		t.Errorf("events are pushed again: %q", again)
	}
	s.check()
}

// TestEventsAreBounded: a follower that falls behind the kept events is told how many it has missed, and continues
// after those. Events of other processes do not make it fall behind.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(0, "Syscall.Spawn", `{"child_agent_id":"a","capabilities":{"allowed_syscalls":["*"]}}`)
	slow, other := s.follow(0, `{}`), s.follow(1, `{}`)
	const spawned = 2*process.Recent + 100
	for n := range spawned {
		s.own("Syscall.Spawn", `{"child_agent_id":"b"}`, "", "")
		if n%100 == 0 && other.news() != nil {
			t.Fatal("got an event of another's child")
		}
	}
	got := slow.news()
	var missed int
	result, err := s.domain.Decide(s.request(0, "Process.Watch", `{"pid":0,"after":1}`))
	testkit.Must(t, err)
	if _, err := fmt.Sscanf(string(result.Lasting.Events[0].Data), `{"missed":%d}`, &missed); err != nil {
		t.Fatal(err)
	}
	if missed < spawned-process.Recent || missed > spawned-process.Recent/4 || len(got) != 1+spawned-missed || !strings.HasPrefix(got[0], "Lagged") ||
		got[1] != fmt.Sprintf("Spawned %d", missed+2) || got[len(got)-1] != fmt.Sprintf("Spawned %d", spawned+1) {
		t.Errorf("missed %d, got %d events: %q …", missed, len(got), got[:2])
	}
}

// TestEventsOfARestoredState: a follower continues at its position when the state is rebuilt, as after a lost write.
func TestEventsOfARestoredState(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(0, "Syscall.Spawn", `{"child_agent_id":"a"}`)
	f := s.follow(0, `{}`)
	s.must(0, "Syscall.Spawn", `{"child_agent_id":"b"}`)
	if got := f.news(); !slices.Equal(got, []string{"Spawned 2"}) {
		t.Errorf("got events %q", got)
	}
	s.domain = restore(t, s.domain)
	s.must(0, "Syscall.Spawn", `{"child_agent_id":"c"}`)
	if got := f.news(); !slices.Equal(got, []string{"Spawned 3"}) {
		t.Errorf("got events %q", got)
	}
}

// TestWatchIsBounded: one question examines a bounded number of events, and its follower asks again until it has
// passed all, however many there are and however deep the processes are.
func TestWatchIsBounded(t *testing.T) {
	t.Parallel()
	d := process.New(nil)
	const deep = 500
	spawnMany(t, d, deep+process.Recent, func(pid int64) int64 { return min(pid-1, deep) })
	next := &schema.ProcessWatchInput{PID: 1 << 40}
	for asked := 1; ; asked++ {
		result, err := d.Decide(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessWatch.Syscall, Input: next}})
		testkit.Must(t, err)
		if result.Lasting == nil {
			if result.Wait != kernel.Forever || asked < process.Recent/16 {
				t.Errorf("%d questions passed %d events, each with %d processes above it", asked, process.Recent, deep)
			}
			return
		}
		in := result.Lasting.Follow.Input.(*schema.ProcessWatchInput)
		if seen := in.After - max(next.After, deep); seen < 1 || seen > 8 {
			t.Fatalf("one question passed %d events", seen)
		}
		next = in
	}
}
