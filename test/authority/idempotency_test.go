package authority_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/test/authority/model"
)

// race is a kind of race between callers with the same key: half of them make one call, half the other.
type race struct {
	name        string
	half, other request
	code        int // error for the other call once the first has the key; 0: both calls are the same
}

// races returns the races. Their process may make all calls except Memory.*.
func races() []race {
	alloc := request{typ: "Syscall.Alloc", data: `{"resource_id":"gpu","amount":0.1}`}
	spawn := request{typ: "Syscall.Spawn", data: `{"child_agent_id":"b"}`}
	send := request{typ: "Syscall.SendMsg", data: `{"receiver_pid":1,"payload":1}`}
	commit := request{typ: "Syscall.CommitDelta", data: `{"changes":{"n":1}}`}
	denied := request{typ: "Memory.Set", data: `{"key":"k","value":1}`}
	return []race{
		{"allocations", alloc, alloc, 0},
		{"spawns", spawn, spawn, 0},
		{"messages", send, send, 0},
		{"deltas", commit, commit, 0},
		{"two bodies", alloc, request{typ: "Syscall.Alloc", data: `{"resource_id":"gpu","amount":0.2}`}, 409},
		{"two domains", spawn, commit, 409},
		{"a denied one beside", spawn, denied, 403},
	}
}

// TestKeyRunsOnce makes 64 callers of one process send a key concurrently, and each of them again: one call runs, and all callers with
// its body get exactly its outcome, whatever other calls use the key.
func TestKeyRunsOnce(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for _, r := range races() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s, done := start(t, &config{pools: map[string]float64{"gpu": 100}, mailbox: 1000})
			pid := s.connect(model.Operator).spawn(t, `{"allowed_syscalls":["Syscall.*"],"resource_quotas":{"gpu":100}}`)
			clients := make([]*client, callers)
			for i := range clients {
				clients[i] = s.connect(pid)
			}
			for round := range rounds {
				r.run(t, clients, fmt.Sprint("key", round))
			}
			done()
			ranOnce(t, s, rounds)
			if _, err := s.replay(func(*kernel.Call) {}); err != nil {
				t.Error(err)
			}
		})
	}
}

// run makes all clients send their call twice, concurrently, and checks the answers.
func (r *race) run(t *testing.T, clients []*client, key string) {
	t.Helper()
	told := make([][2]answer, len(clients))
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i, c := range clients {
		call := r.half
		if i%2 == 1 {
			call = r.other
		}
		call.key = key
		call.data = strings.ReplaceAll(call.data, `"b"`, `"b-`+key+`"`) // siblings must have different names
		all.Go(func() {
			<-begin
			for j := range told[i] {
				a, err := c.ask(call)
				if err != nil {
					t.Error(err)
					return
				}
				told[i][j] = a
			}
		})
	}
	close(begin)
	all.Wait()
	if told[0][0].code != 0 && r.code == 409 { // the other body arrived first
		for i := 0; i+1 < len(told); i += 2 {
			told[i], told[i+1] = told[i+1], told[i]
		}
	}
	for i, answers := range told {
		for _, a := range answers {
			if first := told[0][0]; i%2 == 1 && r.code != 0 {
				if a.code != r.code {
					t.Errorf("%s: the other body got %s, want error %d", key, a, r.code)
				}
			} else if a.code != 0 || string(a.data) != string(first.data) {
				t.Errorf("%s: caller %d got %s, another %s", key, i, a, first)
			}
		}
	}
}

// ranOnce checks in the journal that exactly one call ran for each key; the others repeat its outcome or were refused.
func ranOnce(t *testing.T, s *system, keys int) {
	t.Helper()
	entries, err := s.entries()
	testkit.Must(t, err)
	ran, seq := map[string]int{}, map[string]uint64{}
	for _, e := range entries {
		switch {
		case e.key == "" || e.outcome.Err != nil:
		case e.outcome.Repeats == 0:
			ran[e.key]++
			seq[e.key] = e.seq
		case e.outcome.Repeats != seq[e.key]:
			t.Errorf("entry %d repeats entry %d, want %d", e.seq, e.outcome.Repeats, seq[e.key])
		}
	}
	if len(ran) != keys {
		t.Errorf("%d keys ran, want %d", len(ran), keys)
	}
	for key, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", key, n)
		}
	}
}
