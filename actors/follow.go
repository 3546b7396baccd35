package actors

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/refer"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// lasting stores what continues after an answered call.
func (c *connection) lasting(call *kernel.Call) {
	l := call.Lasting
	if l == nil || call.Err != nil {
		return
	}
	var key *endingKey
	if l.End != nil {
		if c.endings == nil {
			c.endings = make(map[endingKey]ending)
		}
		key = &endingKey{l.End.Row.Type, call.PID}
		c.endings[*key] = ending{*call.AsCause(), *l.End}
	}
	if l.Follow == nil {
		return
	}
	subscribed := kernel.NewCall(kernel.Request{Caller: call.Caller, Message: call.Message, Syscall: call.Syscall, Input: call.Input}, call.Moment)
	subscribed.PID, subscribed.Origin, subscribed.Proof, subscribed.Approval = call.PID, call.Origin, call.Proof, call.Approval
	subscribed.Message.Data = bytes.Clone(call.Message.Data) // the connection's next frames overwrite the buffer
	s := &subscription{following: &following{call: subscribed}, next: *l.Follow, end: key}
	if len(c.following) == maxFollowing {
		c.unsubscribed(s, fault.SubscriptionTooMany.New("a connection has at most %d subscriptions, and this one has as many: open another", maxFollowing))
		return
	}
	c.following = append(c.following, s)
}

// follow asks for more when everything pushed before is written. A peer that has closed its side and has all its answers
// gets nothing more.
func (c *connection) follow(ctx actor.Context) {
	if len(c.following) == 0 {
		return
	}
	if c.drained || c.input.ended && len(c.waiting) == 0 && len(c.outstanding) == 0 {
		c.unfollow(ctx)
		return
	}
	if !c.allWritten() || c.writer.err != nil || c.input.again { // the next turn asks, so that no subscription keeps the loop busy
		return
	}
	for _, s := range slices.Clone(c.following) {
		if !s.underway {
			c.ask(ctx, s)
		}
	}
}

// ask sends the question of a subscription.
func (c *connection) ask(ctx actor.Context, s *subscription) {
	q := &question{replyTo: ctx.Self(), following: s.following}
	q.sender = q
	if err := c.kernel.fill(&q.batch, s.call.AsCause(), s.next); err != nil {
		c.unsubscribed(s, err)
		return
	}
	q.calls[0].PID, q.calls[0].Cause = s.call.PID, s.call.Proof.Seq
	s.underway = true
	c.watch(ctx, q.domain)
	ctx.Send(c.kernel.domains[q.domain], &q.batch)
}

// followed handles the outcome of a question.
func (c *connection) followed(q *question) {
	i := slices.IndexFunc(c.following, func(s *subscription) bool { return s.following == q.following })
	if i < 0 {
		return // its domain has died
	}
	s, call := c.following[i], &q.calls[0]
	s.underway = false
	switch l := call.Lasting; {
	case call.Err != nil:
		c.unsubscribed(s, call.Err)
	case l == nil: // it was cancelled
		c.forget(s)
	default:
		c.push(s, call.Proof, l.Events)
		if s.over.Load() || l.Follow == nil {
			c.forget(s)
		} else {
			s.next = *l.Follow
		}
	}
}

// push encodes events in the dialect of their subscription.
func (c *connection) push(s *subscription, proof schema.Proof, events []kernel.Event) {
	if len(events) > 0 {
		c.inTurn(func() { c.pushAll(s, proof, events) })
	}
}

// pushAll pushes all events of an outcome.
func (c *connection) pushAll(s *subscription, proof schema.Proof, events []kernel.Event) {
	now := time.Now()
	for i := range events {
		stamp := c.stamps.Next(now)
		stamp.Proof = proof
		if !c.writer.push(&s.call, &events[i], &stamp) {
			c.spill(func(sp refer.Spill) []byte { return sp.Event(nil, &s.call, &events[i], &stamp) }, func() { c.pushAll(s, proof, events[i+1:]) })
			return
		}
	}
}

// unsubscribed ends a subscription whose question failed, and tells the peer why.
func (c *connection) unsubscribed(s *subscription, why *fault.Fault) {
	c.forget(s)
	meta := s.call.Message.Meta
	domain, _, _ := strings.Cut(s.call.Message.Type, ".")
	c.push(s, schema.Proof{}, []kernel.Event{{
		Type:        domain + ".Unsubscribed",
		Data:        fault.AppendData(nil, why),
		Causation:   meta.ID,
		Correlation: meta.Correlation,
	}})
	if s.end != nil {
		c.end(*s.end)
	}
}

func (c *connection) forget(s *subscription) {
	c.following = slices.DeleteFunc(c.following, func(one *subscription) bool { return one == s })
}

// unfollow ends all subscriptions. One with a question in flight ends when that returns: the answer may contain something
// that was removed from the domain, such as mail.
func (c *connection) unfollow(ctx actor.Context) {
	asked := make(map[schema.Domain]string)
	c.following = slices.DeleteFunc(c.following, func(s *subscription) bool {
		if !s.over.Swap(true) && s.underway {
			asked[s.next.Row.Domain] = s.call.Caller.Conn
		}
		return !s.underway
	})
	for name, conn := range asked {
		ctx.Send(c.kernel.domains[name], hangUp{conn})
	}
}

// lost removes the subscriptions whose question is in flight to an actor that died.
func (c *connection) lost(pid *actor.PID) {
	c.following = slices.DeleteFunc(c.following, func(s *subscription) bool {
		return s.underway && (c.kernel.domains[s.next.Row.Domain] == pid || c.kernel.audit == pid)
	})
}

// end runs the command for the end of a subscription, or of the connection.
func (c *connection) end(key endingKey) {
	e := c.endings[key]
	delete(c.endings, key)
	c.kernel.conclude(&e.cause, e.step)
}

// conclude runs the command for the end of a call's connection.
func (k *Kernel) conclude(cause *kernel.Cause, request schema.Request) {
	s, err := k.step(cause, request)
	if err != nil {
		k.log.Error("command at the end of a connection failed", "conn", cause.Conn, "type", request.Row.Type, "error", err)
		return
	}
	s.mustApply = true
	k.send(s)
}

// question is what a connection asks for a subscription: a call of the kernel itself, whose outcome is pushed.
type question struct {
	batch
	replyTo *actor.PID
	*following
}

// ready drops a question whose answer is not wanted any more.
func (q *question) ready(ctx actor.Context, d *domain) bool {
	if q.over.Load() {
		q.giveUp(ctx, d)
		return false
	}
	return true
}

// admit returns the gate's verdict on the subscription: it continues while its subscriber may still subscribe.
func (q *question) admit(d *domain, call *kernel.Call) kernel.Verdict {
	subscribed := q.following.call
	subscribed.Parked, subscribed.Lapsed, subscribed.Time = true, call.Lapsed, time.Now().UnixMilli()
	subscribed.Holds = kernel.Paid
	v := d.kernel.gate.Admit(&subscribed)
	call.Tick = subscribed.Tick
	call.Approval, q.following.call.Approval = subscribed.Approval, subscribed.Approval
	return v
}

func (q *question) decide(d *domain, call *kernel.Call) (kernel.Result, error) {
	if call.Syscall.Kind == schema.KindCommand && d.kernel.refusing.Load() {
		return kernel.Result{}, record.Unavailable()
	}
	return d.decide(call, true) // a question is always alone
}

// park keeps a question without news, without a limit: a command until its PID is woken, a query until the state changes.
func (q *question) park(_ actor.Context, d *domain, _ time.Duration) {
	if q.calls[0].Syscall.Kind == schema.KindQuery {
		d.watching = append(d.watching, &q.batch)
	} else {
		d.keep(&parked{batch: &q.batch})
	}
}

// giveUp answers without an outcome. Nothing is journaled.
func (q *question) giveUp(ctx actor.Context, _ *domain) { ctx.Send(q.replyTo, &q.batch) }

// refuse keeps the question for later.
func (q *question) refuse(_ actor.Context, d *domain, _ int) {
	d.rebuilding.following = append(d.rebuilding.following, &q.batch)
}

func (q *question) answer(ctx actor.Context, _ *Kernel) { ctx.Send(q.replyTo, &q.batch) }

// unrecorded says that a query about the journal has no entry.
func (q *question) unrecorded() bool { return q.calls[0].Syscall.Kind == schema.KindQuery }

func (q *question) isOver() bool { return q.over.Load() }
