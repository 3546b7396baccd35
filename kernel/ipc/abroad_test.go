package ipc_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// kernels are the reachable kernels.
type kernels []string

func (k kernels) Reach(name string) *fault.Fault {
	for _, one := range k {
		if one == name {
			return nil
		}
	}
	return fault.ClusterNoKernel.New("none is named %s", name)
}

// Carries refuses what is not in the outbox of a kernel because of its length.
func (k kernels) Carries(letter *schema.Letter) *fault.Fault {
	if size := len(letter.Payload) + len(letter.Correlation); size > 1000 {
		return fault.ClusterTooLarge.New("%d bytes", size)
	}
	return nil
}

// A message to another kernel is in the outbox until it is settled, in a replay and in a snapshot too.
func TestOutbox(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{Capacity: 2, Rules: []ipc.Rule{{Intent: new("secret")}}}, 1)
	const data = `{"receiver_pid":7,"receiver_kernel":"beta","payload":%d,"intent":%q,"expires_at_tick":5}`
	if _, err := s.run(1, "Syscall.SendMsg", fmt.Sprintf(data, 1, "")); err == nil || err.ID != fault.ClusterOff {
		t.Errorf("without a cluster: %v", err)
	}
	s.domain.SeeKernels(kernels{"beta"})
	s.id = "call-1"
	if got := s.must(1, "Syscall.SendMsg", fmt.Sprintf(data, 1, "work")); got != `{"receiver_pid":7,"status":"QUEUED","msg_id":1,"receiver_kernel":"beta"}` {
		t.Error(got)
	}
	if got := s.must(1, "Syscall.SendMsg", fmt.Sprintf(data, 2, "secret")); !strings.Contains(got, `"BLOCKED_BY_GOVERNANCE","msg_id":2`) {
		t.Error(got)
	}
	if _, err := s.run(1, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":7,"receiver_kernel":"beta","payload":%q}`, strings.Repeat("x", 1000))); err == nil || err.ID != fault.ClusterTooLarge {
		t.Errorf("longer than the bus carries: %v", err)
	}
	s.tick = 6
	if got := s.must(1, "Syscall.SendMsg", fmt.Sprintf(data, 3, "")); !strings.Contains(got, `"EXPIRED","msg_id":3`) {
		t.Error(got)
	}
	s.tick = 5
	s.must(1, "Syscall.SendMsg", fmt.Sprintf(data, 4, ""))
	if _, err := s.run(1, "Syscall.SendMsg", fmt.Sprintf(data, 5, "")); err == nil || err.ID != fault.ClusterFull {
		t.Errorf("a third one of an agent: %v", err)
	}
	s.check()
	left := s.restored().Outbox()
	if len(left) != 2 || left[0].MsgID != 1 || left[0].Causation != "call-1" || string(left[0].Payload) != "1" || left[0].Kernel != "beta" || *left[0].ExpiresAtTick != 5 || left[1].MsgID != 4 {
		t.Errorf("%+v", left)
	}
	for range 2 { // the second time changes nothing
		s.must(0, "Ipc.Settle", `{"msg_id":1,"receiver_pid":7,"kernel":"beta","status":"DELIVERED"}`)
	}
	s.must(1, "Syscall.SendMsg", fmt.Sprintf(data, 6, ""))
	s.check()
	if left := s.domain.Outbox(); len(left) != 2 || left[0].MsgID != 4 || left[1].MsgID != 5 {
		t.Errorf("%+v", left)
	}
}

var payloads = regexp.MustCompile(`"payload":([0-9]+),`)

// TestAcceptedOnce: another kernel sends the messages of a lane in order, each until it has the outcome. Answers are
// lost, either side restarts from its journal, and the mailbox is full at times: each message is read once, in order.
func TestAcceptedOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 17))
		s := newShell(t, ipc.Options{Capacity: 3}, 1, 2)
		next, read := map[int64]int64{1: 1, 2: 1}, map[int64]int64{1: 1, 2: 1}
		count := func(pid int64, got string) { // each number is read once, in order
			for _, m := range payloads.FindAllStringSubmatch(got, -1) {
				if m[1] != fmt.Sprint(read[pid]) {
					t.Fatalf("seed %d: pid %d reads %s, want %d: %s", seed, pid, m[1], read[pid], got)
				}
				read[pid]++
			}
		}
		for range 60 {
			pid := int64(1 + chance.IntN(2))
			switch chance.IntN(4) {
			case 0, 1:
				_, err := s.run(3, "Ipc.Accept", fmt.Sprintf(
					`{"kernel":"alpha","instance":"i","epoch":1,"msg_id":%d,"sender_pid":9,"receiver_pid":%d,"payload":%d}`, next[pid], pid, next[pid]))
				if err != nil && err.ID != fault.IpcMailboxFull {
					t.Fatal(err)
				}
				if err == nil && chance.IntN(3) > 0 { // else the answer is lost
					next[pid]++
				}
			case 2:
				got := s.must(pid, "Ipc.Receive", `{"max":2}`)
				count(pid, got)
				if n := strings.Count(got, `"sender_pid":9,"sender_kernel":"alpha"`); n != strings.Count(got, `"payload"`) {
					t.Fatal(got)
				}
			case 3:
				s.domain = s.restored()
			}
		}
		s.check()
		for pid := range next {
			count(pid, s.must(pid, "Ipc.Receive", `{}`))
			if read[pid] != next[pid] && read[pid] != next[pid]+1 { // the last answer may be lost
				t.Fatalf("seed %d: pid %d has read up to %d, and %d is next", seed, pid, read[pid], next[pid])
			}
		}
	}
}

// A restored or another state directory has new numbers.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1)
	for _, test := range []struct {
		instance  string
		epoch, id int
		known     bool
	}{
		{"i", 1, 5, false}, {"i", 1, 5, true}, {"i", 1, 4, true}, {"i", 2, 1, false}, {"i", 1, 9, true}, {"j", 1, 1, false}, {"j", 1, 1, true},
	} {
		got := s.must(3, "Ipc.Accept", fmt.Sprintf(
			`{"kernel":"alpha","instance":%q,"epoch":%d,"msg_id":%d,"sender_pid":9,"receiver_pid":1,"payload":0,"ticks_left":3}`, test.instance, test.epoch, test.id))
		if known := strings.Contains(got, `"known":true`); known != test.known {
			t.Errorf("%+v: %s", test, got)
		}
	}
	if got := s.must(3, "Ipc.Accept", `{"kernel":"alpha","instance":"j","epoch":1,"msg_id":2,"sender_pid":9,"receiver_pid":1,"payload":0,"ticks_left":-1}`); !strings.Contains(got, "EXPIRED") {
		t.Error(got)
	}
	s.check()
}

// TestTakenOutlivesMailbox: what a mailbox has taken is known after its process has ended, for the latest 1,024 of each kernel, so that a
// message that was delivered is not refused when the other kernel asks again.
func TestTakenOutlivesMailbox(t *testing.T) {
	t.Parallel()
	s := newShell(t, ipc.Options{}, 1, 2)
	accept := func(kernel string, id, pid int64) (string, *fault.Fault) {
		return s.run(3, "Ipc.Accept", fmt.Sprintf(`{"kernel":%q,"instance":"i","epoch":1,"msg_id":%d,"sender_pid":9,"receiver_pid":%d,"payload":0}`, kernel, id, pid))
	}
	taken := func(kernel string, id, pid int64) bool {
		got := s.must(0, "Ipc.Taken", fmt.Sprintf(`{"kernel":%q,"instance":"i","epoch":1,"msg_id":%d,"receiver_pid":%d}`, kernel, id, pid))
		return got == `{"taken":true}`
	}
	for _, kernel := range []string{"alpha", "gamma"} {
		if got, err := accept(kernel, 5, 1); err != nil || !strings.Contains(got, "DELIVERED") || !taken(kernel, 5, 1) || taken(kernel, 6, 1) || taken(kernel, 5, 2) {
			t.Fatal(kernel, got, err)
		}
	}
	s.internal("Ipc.Close", 1)
	for range 2 {
		if got, err := accept("alpha", 5, 1); err != nil || !strings.Contains(got, `"known":true`) || !taken("alpha", 5, 1) || taken("alpha", 6, 1) {
			t.Fatal(got, err)
		}
		if _, err := accept("alpha", 6, 1); err == nil || err.ID != fault.IpcNoMailbox {
			t.Fatal(err)
		}
		s.domain = s.restored()
	}
	for pid := int64(10); pid < 10+1024; pid++ {
		s.internal("Ipc.Open", pid)
		if _, err := accept("alpha", pid, pid); err != nil {
			t.Fatal(err)
		}
		s.internal("Ipc.Close", pid)
	}
	if taken("alpha", 5, 1) || !taken("alpha", 10, 10) || !taken("gamma", 5, 1) {
		t.Error("the oldest of alpha, and no other, is to be forgotten")
	}
	s.check()
}
