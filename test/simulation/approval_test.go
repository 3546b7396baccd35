package simulation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/test/authority/model"
)

// askWait is how long a call waits for approval.
const askWait = 3 * time.Second

// serveApprovals connects the approval domain of s to its kernel.
func serveApprovals(s *state, k *actors.Kernel) {
	s.approvals.Serve(approval.Shell{
		Ask: k.Ask, Repeats: k.Repeats, Answered: k.Answered, Raised: func(*approval.Approval) {}, Wait: askWait,
	})
}

// question is an approval question, as the journal records it.
type question struct {
	pid       int64
	typ, data string
	expires   int64  // Unix milliseconds
	decision  string // "": not answered
	until     int64  // the end of an approval for a period; 0: it is for one call
	usedFor   string // id of the message that used the approval; "": none
	ran       bool   // the call of an approval for one call was made
}

// asks reports whether the policy requires approval of a call made as who. It repeats the rules independently.
func asks(q *request, who int64) bool {
	return who != model.Operator && changes(q) && (strings.Contains(q.frame, `"key":"k1"`) || strings.Contains(q.frame, `"key":"k2"`))
}

// changes reports whether a call changes memory.
func changes(q *request) bool {
	return slices.Contains([]string{"Memory.Set", "Memory.Delete", "Memory.CompareAndSet"}, q.typ)
}

// waiting draws the id of a question, mostly of an existing one.
func (w *world) waiting() string {
	n := len(w.oracle.questions)
	return fmt.Sprintf("q-%d", max(1, n+1-w.r.IntN(min(n, 5)+2)))
}

// answer makes the operator answer a waiting question, if there is one.
func (w *world) answer() {
	var waiting []string
	for id, q := range w.oracle.questions {
		if q.decision == "" {
			waiting = append(waiting, id)
		}
	}
	c := w.operator()
	if len(waiting) == 0 || c == nil {
		return
	}
	slices.Sort(waiting)
	decision := pick(w, []string{`"approve"`, `"approve"`, `"approve","for_seconds":2`, `"refuse"`})
	w.order(c, "Approval.Decide", fmt.Sprintf(`{"id":%q,"decision":%s}`, pick(w, waiting), decision))
	c.link.arrive(len(c.link.flying))
	w.turn()
}

// operator returns a client of the operator without pending requests. It connects one if there is none; nil: there are too many clients.
func (w *world) operator() *client {
	i := slices.IndexFunc(w.clients, func(c *client) bool { return c.pid == model.Operator && len(c.pending) == 0 && !c.link.ended })
	if i < 0 {
		if len(w.clients) > w.scenario.clients+1 {
			return nil
		}
		w.connect(model.Operator)
		i = len(w.clients) - 1
	}
	return w.clients[i]
}

// order makes a client of the operator send a command.
func (w *world) order(c *client, typ, data string) {
	q := w.request(c, typ)
	w.frame(q, data)
	w.note("client %d sends %s %s alone", c.number, q.id, typ)
	c.send(q)
}

// asked checks and records a step that raises a question or uses up an approval.
func (o *oracle) asked(m *schema.Message, input any) error {
	switch in := input.(type) {
	case *schema.ApprovalRequestedInput:
		q := o.sent[m.Meta.Causation]
		if q == nil || !changes(q) || in.PID != q.pid || in.Type != q.typ {
			return errors.New("asks about what nobody has called")
		}
		if o.questions[in.ID] != nil {
			return errors.New("is asked again")
		}
		o.questions[in.ID] = &question{pid: in.PID, typ: in.Type, data: string(in.Data), expires: in.Expires}
	case *schema.ApprovalUseInput:
		q := o.questions[in.ID]
		if q == nil || q.decision != schema.Approve || q.until != 0 || q.usedFor != "" {
			return errors.New("uses up what is no approval, or none any more")
		}
		q.usedFor = m.Meta.Causation
	}
	return nil
}

// decides checks and records an answer to a question.
func (o *oracle) decides(e *entry, in *schema.ApprovalDecideInput) error {
	q := o.questions[in.ID]
	switch err := e.outcome.Err; {
	case lost(e):
	case q == nil && (err == nil || err.Code() != 404):
		return errors.New("there is no such question: want error 404")
	case q == nil:
	case q.decision != "" || e.time >= q.expires || o.exited[q.pid]:
		if err == nil || err.Code() != 409 {
			return errors.New("it is answered, or over: want error 409")
		}
	case err != nil:
		return errors.New("want it to succeed: the question waits")
	default:
		out, invalid := schema.ApprovalDecide.Decode(e.outcome.Data)
		if invalid != nil {
			return invalid
		}
		q.decision, q.until = in.Decision, out.Until
	}
	return nil
}

// let checks a call against the approval that it needs. over reports whether the call was not made because of that.
func (o *oracle) let(e *entry, q *request, m *schema.Message) (over bool, err error) {
	failed, let := e.outcome.Err, e.outcome.Let
	of := changes(q) && failed != nil && failed.ID.Domain() == fault.ApprovalPending.Domain()
	switch {
	case !asks(q, e.verdict.Who):
		if let != nil || of {
			return false, errors.New("nobody has to be asked about it")
		}
		return false, nil
	case of && failed.ID == fault.ApprovalRefused:
		if a := o.questions[failed.Detail("approval")]; a == nil || a.decision != schema.Refuse {
			return false, errors.New("was not refused")
		}
		return true, nil
	case of:
		return true, nil
	case failed != nil || e.outcome.Repeats > 0:
		return false, nil
	case let == nil:
		return false, errors.New("was made, and nobody had been asked")
	}
	a := o.questions[let.Approval]
	switch {
	case a == nil || a.decision != schema.Approve || a.pid != e.verdict.Who || a.typ != q.typ || a.data != string(m.Data):
		return false, fmt.Errorf("was let through by %s, which is no approval of it", let.Approval)
	case a.until == 0 && (a.usedFor != q.id || a.ran):
		return false, fmt.Errorf("was let through by %s, which has been used up", let.Approval)
	case a.until != 0 && e.time >= a.until:
		return false, fmt.Errorf("was let through by %s, which has ended", let.Approval)
	}
	a.ran = true
	return false, nil
}

// halts records that a process and its descendants are paused, or resumed.
func (o *oracle) halts(e *entry, pid int64, on bool) error {
	if e.outcome.Err != nil {
		return nil
	}
	if pid < 1 || pid > int64(len(o.Procs)) {
		return errors.New("there is no such process")
	}
	for p := range int64(len(o.Procs)) + 1 {
		if p == pid || o.Below(p, pid) {
			o.paused[p] = on
		}
	}
	return nil
}

// stands checks that a paused process neither reads nor changes memory. Calls that were in flight before the pause are exempt,
// since other entries account for them.
func (o *oracle) stands(e *entry, q *request) error {
	if !o.paused[q.pid] || q.pid == model.Operator || !strings.HasPrefix(q.typ, "Memory.") || lost(e) || e.outcome.Let != nil {
		return nil
	}
	if err := e.outcome.Err; err != nil && err.ID == fault.ProcessPaused {
		return nil
	}
	return errors.New("is carried out, and its process is paused")
}

// resume makes the operator resume every paused process. It returns false if none is paused.
func (w *world) resume() bool {
	var paused []int64
	w.state.procs.Living(func(p *schema.Descriptor) {
		if p.Paused {
			paused = append(paused, p.PID)
		}
	})
	if len(paused) == 0 {
		return false
	}
	c := w.operator()
	if c == nil {
		w.connect(model.Operator)
		c = w.clients[len(w.clients)-1]
	}
	for _, pid := range paused {
		w.order(c, "Process.Resume", fmt.Sprintf(`{"target_pid":%d}`, pid))
	}
	return true
}
