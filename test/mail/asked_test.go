package mail_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// asks is a policy that asks before alpha spawns a process, or sends a message.
const asks = `@id("spawns") @ask("30m") forbid(principal == Agent::"kernel-alpha", action == Syscall::"Syscall.Spawn", resource);
@id("sends") @ask("30m") forbid(principal == Agent::"kernel-alpha", action == Syscall::"Syscall.SendMsg", resource);`

// asker spawns processes at beta through alpha, and answers the questions there.
type asker struct {
	t           *testing.T
	ctx         context.Context
	alpha, beta dialer
	decided     int // questions
}

// newAsker has beta ask from now on.
func newAsker(t *testing.T, alpha, beta dialer, home *testkit.Place) *asker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testkit.Patience)
	t.Cleanup(cancel)
	a := &asker{t: t, ctx: ctx, alpha: alpha, beta: beta}
	testkit.WriteFile(t, home.Path("policy.cedar"), asks)
	ask(a, beta, schema.PolicyReload, &schema.PolicyReloadInput{})
	return a
}

// askedPair returns two kernels that reach each other, of which beta asks.
func askedPair(t *testing.T, options string) (alpha, beta *node, a *asker) {
	t.Helper()
	alpha, beta, _ = pair(t, options, options)
	reached(t, alpha, beta)
	return alpha, beta, newAsker(t, alpha, beta, beta.place)
}

// ask makes a call as the operator of a kernel.
func ask[In, Out any](a *asker, at dialer, row schema.Callable[In, Out], in *In) *Out {
	a.t.Helper()
	c := testkit.Value(at.dial(a.ctx))(a.t)
	defer func() { testkit.Must(a.t, c.Close()) }()
	return testkit.Value(client.Call(a.ctx, c, row, in))(a.t)
}

// spawned is the answer to a spawn.
type spawned struct {
	pid int64
	err error
}

// spawn begins to spawn a process, as a process of alpha. The name is also the idempotency key.
func (a *asker) spawn(as int64, name string) <-chan spawned {
	a.t.Helper()
	in := &schema.SpawnInput{ChildAgentID: name, Kernel: new("beta")}
	in.PID = &as
	data := testkit.Value(schema.SyscallSpawn.Encode(in))(a.t)
	made := make(chan spawned, 1)
	go func() {
		answer, err := insist(a.ctx, a.alpha, schema.SyscallSpawn.Type, name, data)
		if err != nil {
			made <- spawned{err: err}
			return
		}
		out, err := schema.SyscallSpawn.Decode(answer)
		made <- spawned{out.ChildPID, err}
	}()
	return made
}

// outcome returns the outcome of a spawn, which is repeated while it waits for an approval.
func (a *asker) outcome(made <-chan spawned, as int64, name string) spawned {
	a.t.Helper()
	out := testkit.Receive(a.t, made, "the outcome of "+name)
	for tries := 0; errors.Is(out.err, fault.ApprovalPending) && tries < 10; tries++ {
		out = testkit.Receive(a.t, a.spawn(as, name), "the outcome of "+name)
	}
	return out
}

// question waits until there is one more question at beta, and returns its id. There must not be two.
func (a *asker) question() (id string) {
	a.t.Helper()
	var list []schema.ApprovalState
	testkit.Eventually(a.t, "a question is asked", func() bool {
		list = ask(a, a.beta, schema.ApprovalList, &schema.ApprovalListInput{}).Approvals
		return len(list) > a.decided
	})
	if len(list) != a.decided+1 {
		a.t.Fatalf("%d questions, want %d: %+v", len(list), a.decided+1, list)
	}
	return list[a.decided].ID
}

// decide answers a question.
func (a *asker) decide(id, decision string) {
	a.t.Helper()
	in := &schema.ApprovalDecideInput{ID: id, Decision: decision}
	if decision == schema.Refuse {
		in.Why = new("not today")
	}
	ask(a, a.beta, schema.ApprovalDecide, in)
	a.decided++
}

// one checks that a spawn was approved, asked about once, and done once.
func (a *asker) one(name string, out spawned) {
	a.t.Helper()
	if list := spawnedAt(a.ctx, a.t, a.beta, name); out.err != nil || len(list) != 1 || list[0] != out.pid {
		a.t.Errorf("%s: %+v, at beta %v", name, out, list)
	}
	if n := len(ask(a, a.beta, schema.ApprovalList, &schema.ApprovalListInput{}).Approvals); n != a.decided {
		a.t.Errorf("%s: %d questions, %d were answered", name, n, a.decided)
	}
}

// none checks that a spawn was refused, and not done.
func (a *asker) none(name string, out spawned) {
	a.t.Helper()
	if list := spawnedAt(a.ctx, a.t, a.beta, name); !errors.Is(out.err, fault.ApprovalRefused) || !strings.Contains(out.err.Error(), "not today") || len(list) != 0 {
		a.t.Errorf("%s: %+v, at beta %v", name, out, list)
	}
}

// A spawn that another kernel has to approve waits there for a short time, and then names the question. Nothing is spawned unless the call
// waits or is made again; it is spawned once, whatever was killed.
func TestSpawnAsked(t *testing.T) {
	t.Parallel()
	_, _, a := askedPair(t, mayRun)

	made := a.spawn(0, "in time")
	a.decide(a.question(), schema.Approve)
	a.one("in time", a.outcome(made, 0, "in time"))

	made = a.spawn(0, "refused")
	a.decide(a.question(), schema.Refuse)
	a.none("refused", a.outcome(made, 0, "refused"))
	a.none("refused", a.outcome(a.spawn(0, "refused"), 0, "refused"))
}

// TestSpawnAskedLate: a call that does not wait for the answer names the question, nothing is spawned at the answer, and the next call with
// the same key spawns.
func TestSpawnAskedLate(t *testing.T) {
	t.Parallel()
	_, beta, a := askedPair(t, mayRun)

	made := a.spawn(0, "late")
	id := a.question()
	if out := testkit.Receive(t, made, "the end of the wait"); !errors.Is(out.err, fault.ApprovalPending) || !strings.Contains(out.err.Error(), id) {
		t.Errorf("not answered: %+v, want it to name %s", out, id)
	}
	a.decide(id, schema.Approve)
	if list := spawnedAt(a.ctx, t, beta, "late"); len(list) != 0 {
		t.Errorf("%v were spawned although no call waits", list)
	}
	out := a.outcome(a.spawn(0, "late"), 0, "late")
	a.one("late", out)
	a.one("late", a.outcome(a.spawn(0, "late"), 0, "late")) // the same key: the same process
}

// TestSpawnAskedOrphan: the agent that asked ends before the answer. At most one process is spawned, and its outcome says so.
func TestSpawnAskedOrphan(t *testing.T) {
	t.Parallel()
	alpha, beta, a := askedPair(t, mayRun)

	agent := alpha.spawner("agent")
	made := a.spawn(agent, "orphan")
	id := a.question()
	testkit.Value(client.Call(a.ctx, alpha.Client, schema.SyscallTerminate, &schema.TerminateInput{TargetPID: agent}))(t)
	a.decide(id, schema.Approve)
	ended := testkit.Receive(t, made, "the outcome for an agent that has ended")
	if list := spawnedAt(a.ctx, t, beta, "orphan"); len(list) > 1 || ended.err == nil && (len(list) != 1 || list[0] != ended.pid) {
		t.Errorf("the agent ended: %+v, at beta %v", ended, list)
	}
}

// TestSpawnAskedKilled: neither kernel forgets a spawn that waits for an approval when it is killed.
func TestSpawnAskedKilled(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := sites(t, mayRun)
	a := newAsker(t, alpha, beta, beta.place)

	made := a.spawn(0, "approved")
	id := a.question()
	alpha.process.Kill(t)
	a.decide(id, schema.Approve)
	alpha.start(t)
	a.one("approved", a.outcome(made, 0, "approved"))

	made = a.spawn(0, "refused")
	id = a.question()
	alpha.process.Kill(t)
	a.decide(id, schema.Refuse)
	alpha.start(t)
	a.none("refused", a.outcome(made, 0, "refused"))

	made = a.spawn(0, "kept")
	id = a.question()
	beta.process.Kill(t)
	beta.start(t)
	a.decide(id, schema.Approve)
	a.one("kept", a.outcome(made, 0, "kept"))
}

// TestSpawnAskedLateKilled: a kernel that was killed waits for the answer as before, and names the question.
func TestSpawnAskedLateKilled(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := sites(t, mayRun)
	a := newAsker(t, alpha, beta, beta.place)

	made := a.spawn(0, "late")
	id := a.question()
	alpha.process.Kill(t)
	alpha.start(t)
	if out := testkit.Receive(t, made, "the end of the wait"); !errors.Is(out.err, fault.ApprovalPending) {
		t.Errorf("not answered: %+v", out)
	}
	a.decide(id, schema.Approve)
	a.one("late", a.outcome(a.spawn(0, "late"), 0, "late"))
}

// A message that another kernel has to approve is queued, and arrives once it is approved. It is asked about once, however often it is sent.
func TestMailAsked(t *testing.T) {
	t.Parallel()
	alpha, beta, a := askedPair(t, mayMail)
	to := beta.spawn("reader")
	tick := ask(a, alpha, schema.ClockGet, &schema.ClockGetInput{}).Tick
	in := &schema.SendMsgInput{ReceiverPID: to, ReceiverKernel: new("beta"), Payload: schema.Value(`"please"`), ExpiresAtTick: new(tick + 1000)}
	if out := ask(a, alpha, schema.SyscallSendMsg, in); out.Status != schema.MailQueued {
		t.Fatalf("%+v", out)
	}
	id := a.question()
	testkit.Eventually(t, "alpha sends the message again", func() bool { return beta.recorded("Ipc.Accept") > 2 }) // with the question
	if a.question() != id {
		t.Error("the message was asked about a second time")
	}
	a.decide(id, schema.Approve)
	var got []string
	testkit.Eventually(t, "the message arrives", func() bool {
		got = append(got, beta.mail(to)...)
		return len(got) > 0
	})
	testkit.Eventually(t, "alpha has the outcome", func() bool { return alpha.recorded("Ipc.Settle") == 1 })
	if got = append(got, beta.mail(to)...); !slices.Equal(got, []string{`0@alpha "please"`}) {
		t.Errorf("%q", got)
	}
}

// A message that waits for an approval delays the messages for its process only.
func TestMailAskedDelaysItsReceiver(t *testing.T) {
	t.Parallel()
	alpha, beta, a := askedPair(t, mayMail)
	testkit.WriteFile(t, beta.place.Path("policy.cedar"), `@id("sends") @ask("30m") forbid(principal == Agent::"kernel-alpha", action == Syscall::"Syscall.SendMsg", resource)
when { context.args has intent && context.args.intent == "ask" };`)
	ask(a, beta, schema.PolicyReload, &schema.PolicyReloadInput{})
	asked, other := beta.spawn("asked"), beta.spawn("other")
	for _, intent := range []string{"ask", "later"} {
		in := &schema.SendMsgInput{ReceiverPID: asked, ReceiverKernel: new("beta"), Payload: schema.Value(`"` + intent + `"`), Intent: &intent}
		if out := ask(a, alpha, schema.SyscallSendMsg, in); out.Status != schema.MailQueued {
			t.Fatalf("%+v", out)
		}
	}
	for i := range 8 {
		alpha.sent(schema.MailDelivered, 0, "beta", other, strconv.Itoa(i))
	}
	if got := beta.mail(asked); len(got) != 0 {
		t.Errorf("%q has arrived without an approval, or overtaken one that waits", got)
	}
	a.decide(a.question(), schema.Approve)
	var got []string
	testkit.Eventually(t, "both messages arrive", func() bool {
		got = append(got, beta.mail(asked)...)
		return len(got) >= 2
	})
	if !slices.Equal(got, []string{`0@alpha "ask"`, `0@alpha "later"`}) {
		t.Errorf("%q", got)
	}
}
