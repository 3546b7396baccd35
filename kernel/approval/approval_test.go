package approval_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	wait   = 50 * time.Second
	stands = 30 * time.Minute
)

// people is the process table: 1 is confined, 2 is its child, 3 is not hosted, 4 is hosted but not confined, 5 has
// ended, 6 has ended and is forgotten.
type people map[int64]*schema.Descriptor

func (p people) Process(pid int64) *schema.Descriptor { return p[pid] }

func everybody() people {
	confined, off := "namespaces", "off"
	return people{
		1: {PID: 1, AgentID: "one", Hosted: schema.Hosted{Command: []string{"x"}, Sandbox: &confined}},
		2: {PID: 2, AgentID: "one/two", ParentPID: 1},
		3: {PID: 3, AgentID: "three"},
		4: {PID: 4, AgentID: "four", Hosted: schema.Hosted{Command: []string{"x"}, Sandbox: &off}},
		5: {PID: 5, AgentID: "five", State: "TERMINATED", ExitTick: new(int64)},
		6: {PID: 6, State: "TERMINATED"},
	}
}

// shell is a domain with its journal.
type shell struct {
	t       domaintest.TB
	domain  *approval.Domain
	journal domaintest.Journal
	now     int64
	full    bool             // the journal refuses entries
	pending []schema.Request // questions in flight
	raised  []string
	woken   []string
	last    kernel.Result
}

func newShell(t domaintest.TB) *shell {
	s := &shell{t: t, domain: approval.New(everybody()), now: 1_000_000}
	s.domain.Serve(approval.Shell{
		Ask: func(_ *kernel.Call, question schema.Request) bool {
			if !s.full {
				s.pending = append(s.pending, question)
			}
			return !s.full
		},
		Repeats:  func(call *kernel.Call) bool { return call.Message.Meta.IdempotencyKey != "" },
		Answered: func(id string) { s.woken = append(s.woken, id) },
		Raised:   func(a *approval.Approval) { s.raised = append(s.raised, a.ID) },
		Wait:     wait,
	})
	return s
}

// call is a call of pid about a key.
func (s *shell) call(pid int64, key string) *kernel.Call {
	s.t.Helper()
	call := domaintest.Request(s.t, "Memory.Set", `{"key":"`+key+`","value":1}`)
	call.PID, call.Time = pid, s.now
	call.Inquiry = &kernel.Inquiry{Rule: "careful", Policy: "hash", Fix: "do without", Stands: stands, Data: schema.AppendString(nil, key)}
	return call
}

// settle delivers the questions in flight.
func (s *shell) settle() {
	s.t.Helper()
	for _, question := range s.pending {
		data, err := schema.Marshal(question.Input)
		if err != nil {
			s.t.Fatal(err)
		}
		call := domaintest.Request(s.t, question.Row.Type, string(data))
		call.Time = s.now
		s.journal.Apply(s.domain, call, []byte(`{"success":true}`)) // there are thousands of them
		s.domain.Publish()
	}
	s.pending = nil
}

// run makes a call of the operator, or of the kernel's own.
func (s *shell) run(typ, data string) (string, *fault.Fault) {
	s.t.Helper()
	call := domaintest.Request(s.t, typ, data)
	call.Time, call.Caller = s.now, kernel.Caller{Conn: "c-1", Via: "socket"}
	result, err := domaintest.Decide(s.t, s.domain, call)
	if s.last = result; err != nil {
		return "", domaintest.Shown(s.t, err)
	}
	s.journal.Apply(s.domain, call, result.Data)
	s.domain.Publish()
	return string(result.Data), nil
}

// asks runs the stage for a call. It returns the question that the call waits for, "" if the call proceeds, or the
// fault's id if it is refused.
func (s *shell) asks(call *kernel.Call) string {
	s.t.Helper()
	v := s.domain.Stage(call)
	s.settle()
	switch {
	case v.Fault != nil:
		return string(v.Fault.ID)
	case v.Pending != nil:
		return v.Pending.ID
	}
	return ""
}

func (s *shell) want(pid int64, key, want string) *kernel.Call {
	s.t.Helper()
	call := s.call(pid, key)
	if got := s.asks(call); got != want {
		s.t.Errorf("%s of %d: %q, want %q", key, pid, got, want)
	}
	return call
}

func (s *shell) decide(id, decision, more string) schema.ApprovalState {
	s.t.Helper()
	data, err := s.run("Approval.Decide", fmt.Sprintf(`{"id":%q,"decision":%q%s}`, id, decision, more))
	if err != nil {
		s.t.Fatalf("%s %s: %v", decision, id, err)
	}
	out, bad := schema.ApprovalDecide.Decode([]byte(data))
	if bad != nil {
		s.t.Fatal(bad)
	}
	return *out
}

// use uses up the approval of a call.
func (s *shell) use(call *kernel.Call) *fault.Fault {
	s.t.Helper()
	data, err := schema.Marshal(call.Approval.Use.Input)
	if err != nil {
		s.t.Fatal(err)
	}
	_, failed := s.run("Approval.Use", string(data))
	return failed
}

// check compares the state with that of a replay and of a snapshot.
func (s *shell) check() {
	s.t.Helper()
	s.journal.Check(s.t, s.domain, approval.New(everybody()), approval.New(everybody()))
}

// TestDigest has the example of PROTOCOL 10.
func TestDigest(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(`{"caller":7,"data":{"key":"k"},"type":"Memory.\"Set"}`))
	if got := approval.Digest(7, `Memory."Set`, []byte(`{"key":"k"}`)); got != hex.EncodeToString(sum[:]) {
		t.Errorf("digest %s", got)
	}
}

// TestStage: one call raises one question, before and after its record; an approved call proceeds once.
func TestStage(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for range 2 { // before it is recorded
		if v := s.domain.Stage(s.call(1, "a")); v.Pending == nil || v.Pending.ID != "q-1" || v.Pending.Wait != wait {
			t.Errorf("%+v", v)
		}
	}
	s.settle()
	s.want(1, "a", "q-1")
	s.want(2, "a", "q-2")
	s.want(1, "b", "q-3")
	if got := strings.Join(s.raised, " "); got != "q-1 q-2 q-3" {
		t.Errorf("raised %s", got)
	}
	s.decide("q-1", "approve", "")
	call := s.want(1, "a", "")
	if a := call.Approval; a.ID != "q-1" || a.Rule != "careful" || a.Policy != "hash" || a.Use == nil || a.Advisory {
		t.Errorf("%+v", a)
	}
	if err := s.use(call); err != nil {
		t.Error(err)
	}
	if err := s.use(call); !errors.Is(err, fault.ApprovalOver) {
		t.Errorf("a second use of the approval: %v", err)
	}
	call.Approval.Used = true
	if got := s.asks(call); got != "" {
		t.Errorf("the call that has used its approval raises question %q", got)
	}
	s.want(1, "a", "q-4")
	if got := strings.Join(s.woken, " "); got != "q-1 q-1" {
		t.Errorf("woken for %s, want q-1 twice", got)
	}
	call = s.call(1, "a")
	call.Message.Meta.IdempotencyKey = "done before"
	if got := s.asks(call); got != "" || call.Approval != nil {
		t.Errorf("a repeated call raises question %q, approval %+v", got, call.Approval)
	}
	call = s.call(1, "a")
	call.Inquiry = nil
	if got := s.asks(call); got != "" || call.Approval != nil {
		t.Errorf("a call that no rule asks about raises question %q, approval %+v", got, call.Approval)
	}
	s.decide("q-2", "refuse", `,"why":"no"`)
	v := s.domain.Stage(s.call(2, "a"))
	if f := v.Fault; !errors.Is(f, fault.ApprovalRefused) || f.Detail("rule") != "careful" || f.Detail("approval") != "q-2" || f.Fix != "do without" || !strings.HasSuffix(f.Message, ": no") {
		t.Errorf("%+v", f)
	}
	s.now += stands.Milliseconds() - 1000
	if v := s.domain.Stage(s.call(1, "b")); v.Pending.Wait != time.Second {
		t.Errorf("a second before its expiry: %+v", v)
	}
	s.now += 1000
	s.want(2, "a", "q-5")
	s.want(1, "b", "q-6")
	if _, err := s.run("Approval.Decide", `{"id":"q-3","decision":"approve"}`); !errors.Is(err, fault.ApprovalOver) {
		t.Errorf("an answer to an expired question: %v", err)
	}
	s.check()
}

// TestDecideDigest: an answer that names a digest answers only the question that has it.
func TestDecideDigest(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(1, "a", "q-1")
	other := approval.Digest(1, "Memory.Set", []byte(`"b"`))
	if _, err := s.run("Approval.Decide", `{"id":"q-1","digest":"`+other+`","decision":"approve"}`); !errors.Is(err, fault.ApprovalOther) {
		t.Errorf("an answer for another digest: %v", err)
	}
	s.want(1, "a", "q-1") // still waiting
	shown := approval.Digest(1, "Memory.Set", []byte(`"a"`))
	if got := s.decide("q-1", "approve", `,"digest":"`+shown+`"`); got.State != "approved" {
		t.Errorf("%+v", got)
	}
	s.check()
}

// TestAdvisory: an approval proves a person's decision only if the agent cannot act as its operator.
func TestAdvisory(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for pid, advisory := range map[int64]bool{1: false, 2: false, 3: true, 4: true, 9: true} {
		call := s.call(pid, "a")
		if got := s.decide(s.asks(call), "approve", ""); got.Advisory != advisory {
			t.Errorf("pid %d: %+v", pid, got)
		}
	}
	if n, last := s.domain.Advisory(s.now); n != 3 || last == nil {
		t.Errorf("%d advisory approvals, the last %+v", n, last)
	}
	if n, _ := s.domain.Advisory(s.now + stands.Milliseconds()); n != 0 {
		t.Errorf("%d advisory approvals after they have expired", n)
	}
	s.asks(s.call(3, "b"))
	call := domaintest.Request(t, "Approval.Decide", `{"id":"q-6","decision":"approve"}`)
	call.Time, call.Caller = s.now, kernel.Caller{Conn: "c-1", Key: "SHA256:x", Via: "socket"}
	data, err := domaintest.Run(t, s.domain, call)
	if err != nil || strings.Contains(data, "advisory") || !strings.Contains(data, `"key":"SHA256:x"`) {
		t.Errorf("with a key: %s, %v", data, err)
	}
}

// TestEnded: calls of an ended process raise no question.
func TestEnded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i, pid := range []int64{5, 6} {
		id := fmt.Sprint("q-", i+1)
		s.want(pid, "a", id)
		if data, err := s.run("Approval.List", `{"state":"expired"}`); err != nil || !strings.Contains(data, `"`+id+`"`) {
			t.Errorf("listed %s, %v", data, err)
		}
		if _, err := s.run("Approval.Decide", `{"id":"`+id+`","decision":"approve"}`); !errors.Is(err, fault.ApprovalOver) || !strings.Contains(err.Message, fmt.Sprintf("pid %d has ended", pid)) {
			t.Errorf("answered: %v", err)
		}
	}
}

// TestClockSetBack: a question that replaces an expired one is recorded although the clock was set back.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(1, "a", "q-1")
	s.now += stands.Milliseconds()
	call := s.call(1, "a")
	if v := s.domain.Stage(call); v.Pending == nil || v.Pending.ID != "q-2" {
		t.Errorf("%+v", v)
	}
	s.now -= 1000
	s.settle()
	s.decide("q-2", "approve", "")
	s.check()
}

// TestTooMany: the bound of questions for an agent, and for all of them.
func TestTooMany(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(1, strings.Repeat("x", approval.MaxData), "approval.too_many")
	for i := range approval.MaxEach {
		if got := s.asks(s.call(1, fmt.Sprint(i))); got != fmt.Sprint("q-", i+1) {
			t.Fatalf("%d: %s", i, got)
		}
	}
	s.want(1, "more", "approval.too_many")
	s.want(1, "0", "q-1")
	for i := approval.MaxEach; i < approval.MaxAll; i++ {
		s.asks(s.call(int64(12+i/approval.MaxEach), fmt.Sprint(i)))
	}
	s.want(99, "a", "approval.too_many")
	s.decide("q-1", "approve", "")
	if err := s.use(s.want(1, "0", "")); err != nil {
		t.Error(err)
	}
	s.want(1, "more", fmt.Sprint("q-", approval.MaxAll+1))
	s.now += stands.Milliseconds()
	for i := range approval.MaxEach {
		s.asks(s.call(1, fmt.Sprint("again", i)))
	}
	data, err := s.run("Approval.List", `{}`)
	if err != nil || strings.Contains(data, `"q-2"`) {
		t.Errorf("%v: expired questions are still in the state: %.300s", err, data)
	}
	s.full = true
	s.want(98, "a", "journal.unavailable")
}

// TestTooManyEnded: the questions of ended processes are bounded too, until they expire.
func TestTooManyEnded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i := range 5000 {
		if got := s.asks(s.call(5, fmt.Sprint(i))); got != fmt.Sprint("q-", i+1) {
			t.Fatalf("%d: %s", i, got)
		}
	}
	s.want(1, "a", "approval.too_many")
	s.now += stands.Milliseconds()
	s.want(1, "a", "q-5001")
}

// TestEvents: a follower gets the waiting questions, then each question and each answer once, in order.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i := range 100 {
		s.asks(s.call(1, fmt.Sprint(i)))
	}
	s.decide("q-1", "refuse", "")
	if _, err := s.run("Approval.Subscribe", `{}`); err != nil {
		t.Fatal(err)
	}
	follow := s.last.Lasting.Follow
	told := func() (all []string) {
		t.Helper()
		for {
			data, err := schema.Marshal(follow.Input)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.run("Approval.Watch", string(data)); err != nil {
				t.Fatal(err)
			}
			if s.last.Wait > 0 {
				return all
			}
			for _, e := range s.last.Lasting.Events {
				s, err := schema.TypeOf[schema.ApprovalState]().Decode(e.Data)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, e.Type+" "+s.(*schema.ApprovalState).ID+" "+s.(*schema.ApprovalState).State)
			}
			follow = s.last.Lasting.Follow
		}
	}
	if got := told(); len(got) != 99 || got[0] != "Approval.Requested q-2 waiting" || got[98] != "Approval.Requested q-100 waiting" {
		t.Errorf("first events: %q", got)
	}
	s.asks(s.call(1, "new"))
	s.decide("q-101", "approve", "")
	s.decide("q-2", "approve", "")
	if got := strings.Join(told(), ", "); got != "Approval.Requested q-101 waiting, Approval.Decided q-101 approved, Approval.Decided q-2 approved" {
		t.Errorf("later events: %s", got)
	}
}

// TestModel: after any calls no approval is used twice, and a replay and a snapshot give the same state.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newShell(rt)
		may := make(map[string]int) // how often a call may be made, by its key
		for range rapid.IntRange(1, 60).Draw(rt, "calls") {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
			s.now += rapid.Int64Range(0, stands.Milliseconds()/3).Draw(rt, "later")
			if rapid.Bool().Draw(rt, "decide") {
				id := fmt.Sprintf("q-%d", rapid.IntRange(1, 12).Draw(rt, "question"))
				data, err := s.run("Approval.Decide", fmt.Sprintf(`{"id":%q,"decision":%q}`, id, rapid.SampledFrom([]string{"approve", "refuse"}).Draw(rt, "decision")))
				if err != nil || strings.Contains(data, `"refused"`) {
					continue
				}
				for _, key := range []string{"a", "b", "c"} {
					if strings.Contains(data, `"key":"`+key+`"`) {
						may[key] = 1
					}
				}
				continue
			}
			call := s.call(1, key)
			if s.asks(call) != "" {
				continue
			}
			if may[key]--; may[key] < 0 {
				rt.Fatalf("%s is made without an approval", key)
			}
			if err := s.use(call); err != nil {
				rt.Fatal(err)
			}
		}
		s.check()
	})
}
