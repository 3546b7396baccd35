package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// elicitAfter is the time after which the bridge checks whether a call waits for an approval.
const elicitAfter = time.Second

// trusted reports whether a host's answer to an elicitation counts as its user's approval. A host may answer without a user, so
// only the host that the operator has named is trusted.
func (b *Bridge) trusted(session *sdk.ServerSession) bool {
	if b.link.options.TrustHost == "" || session == nil {
		return false
	}
	init := session.InitializeParams()
	return init != nil && init.ClientInfo != nil && init.ClientInfo.Name == b.link.options.TrustHost &&
		init.Capabilities != nil && init.Capabilities.Elicitation != nil
}

// parked is a call that waits for an approval while its host asks the user.
type parked struct {
	session  *sdk.ServerSession
	question *schema.ApprovalState
	*pendingCall
}

// pendingCall is a call in flight to the kernel.
type pendingCall struct {
	done   chan struct{}   // closed once it is answered
	over   context.Context // done when it is answered or canceled
	cancel context.CancelFunc
	answer schema.Message
	err    error
}

// begin starts a call that can outlive the request of its host, because the host gets a result, and repeats the request, while the
// call waits for its approval.
func (b *Bridge) begin(ctx context.Context, kind schema.Kind, typ string, data []byte, report func(*schema.ProgressedEvent)) *pendingCall {
	p := &pendingCall{done: make(chan struct{})}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.over = ctx
	b.calls.Go(func() {
		defer p.cancel()
		p.answer, p.err = b.link.doReporting(ctx, kind, typ, data, report)
		close(p.done)
	})
	return p
}

// wait returns the answer, or cancels the call if ctx ends first.
func (p *pendingCall) wait(ctx context.Context) (schema.Message, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.cancel()
		<-p.done
	}
	return p.answer, p.err
}

// ask makes a call for a trusted host. If the call waits for an approval, the result asks the host's user and has the request state,
// with which the host repeats the request and adds the answer. Only accept has an effect: decline and cancel may come without a
// person, and the call still waits. The approval needs a new connection of the operator: the kernel refuses it to a bridge that
// runs inside an agent.
func (b *Bridge) ask(ctx context.Context, req *sdk.CallToolRequest, kind schema.Kind, typ string, data []byte) (*sdk.CallToolResult, schema.Message, error) {
	if w := b.unpark(req); w != nil {
		if answer, ok := req.Params.InputResponses[inputName].(*sdk.ElicitResult); ok && answer.Action == "accept" {
			if err := b.approve(ctx, w.question); err != nil {
				b.link.options.Note("%s was accepted, but could not be approved: %v", w.question.ID, err)
			}
		}
		answer, err := w.wait(ctx)
		return nil, answer, err
	}
	p := b.begin(ctx, kind, typ, data, reporting(ctx, req))
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-time.After(elicitAfter):
		if q := b.question(ctx, p, typ, data); q != nil {
			return b.park(&parked{req.Session, q, p}), schema.Message{}, nil
		}
	}
	answer, err := p.wait(ctx)
	return nil, answer, err
}

// inputName is the name of the input request of an approval.
const inputName = "approval"

// park stores a call until its host repeats the request with an answer, and returns the result that asks the user. It removes
// parked calls that are over.
func (b *Bridge) park(w *parked) *sdk.CallToolResult {
	state := rand.Text()
	b.mu.Lock()
	defer b.mu.Unlock()
	for state, old := range b.parked { // whose hosts have not answered
		select {
		case <-old.done:
			delete(b.parked, state)
		default:
		}
	}
	b.parked[state] = w
	q := w.question
	return &sdk.CallToolResult{RequestState: state, InputRequests: sdk.InputRequestMap{inputName: &sdk.ElicitParams{
		Mode:            "form",
		Message:         fmt.Sprintf("%s wants to call %s %s, which needs approval (%s, rule %s). Accept to allow it once.", q.Agent, q.Type, q.Data, q.ID, q.Rule),
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
	}}}
}

// unpark returns the parked call that a host resumes, or nil.
func (b *Bridge) unpark(req *sdk.CallToolRequest) *parked {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.parked[req.Params.RequestState]
	if w == nil || w.session != req.Session {
		return nil
	}
	delete(b.parked, req.Params.RequestState)
	return w
}

// errFound ends the subscription of question.
var errFound = errors.New("found")

// question returns the approval question of a call in flight, nil if the call ends without one.
func (b *Bridge) question(ctx context.Context, p *pendingCall, typ string, data []byte) (q *schema.ApprovalState) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.over, cancel)()
	err := b.asOperator(ctx, func(c *client.Client) error {
		m := schema.Message{Kind: schema.KindCommand, Type: schema.ApprovalSubscribe.Type, Data: []byte(`{}`)}
		return c.Subscribe(ctx, m, func(event schema.Message) error {
			if event.Type != schema.ApprovalHasRequested {
				return nil
			}
			s, err := schema.TypeOf[schema.ApprovalState]().Decode(event.Data)
			if err != nil {
				return err
			}
			if one := s.(*schema.ApprovalState); one.PID == b.link.who() && asksAbout(one, typ, data) {
				q = one
				return errFound
			}
			return nil
		})
	})
	if err != nil && q == nil && ctx.Err() == nil {
		b.link.options.Note("this host cannot ask its user for an approval: %v", err)
	}
	return q
}

// approve answers a question as the operator.
func (b *Bridge) approve(ctx context.Context, q *schema.ApprovalState) error {
	why := "accepted in " + b.link.options.TrustHost
	data, err := schema.ApprovalDecide.Encode(&schema.ApprovalDecideInput{ID: q.ID, Decision: schema.Approve, Why: &why})
	if err != nil {
		return err
	}
	return b.asOperator(ctx, func(c *client.Client) error {
		_, err := c.Call(ctx, schema.KindCommand, schema.ApprovalDecide.Type, data)
		return err
	})
}

// asOperator runs do with a new connection that is not attached to the process.
func (b *Bridge) asOperator(ctx context.Context, do func(*client.Client) error) error {
	c, err := b.link.options.Redial(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// asksAbout reports whether a question is about the call of a type with this data. The question of a registered syscall has the data
// of the call in its member data.
func asksAbout(s *schema.ApprovalState, typ string, data []byte) bool {
	if s.Type != typ {
		return false
	}
	want, err := jsontype.Canonical(data)
	if err != nil {
		return false
	}
	got, err := jsontype.Canonical(s.Data)
	if err == nil && bytes.Equal(got, want) {
		return true
	}
	var same bool
	jsontype.Members(s.Data, func(name, value []byte) bool {
		if string(name) == "data" {
			inner, err := jsontype.Canonical(value)
			same = err == nil && bytes.Equal(inner, want)
		}
		return true
	})
	return same
}
