package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/schema/fault"
)

// line makes the requests of one stream to one kernel, in a session.
type line struct {
	*Link
	to     string
	stream string

	turn    sync.Mutex
	session string
	number  int64 // of the latest request in it
}

// request makes a request in the present session. If that has ended, after a restart of the other kernel or by age, it
// repeats the request in a new one. sent is true if the other kernel may have received it.
func (l *line) request(ctx context.Context, req *request) (reply *answer, sent bool, err error) {
	for again := true; ; again = false {
		if !l.has() {
			if reply, _, err := l.exchange(ctx, &request{Stream: l.stream}); err != nil || reply.Error != nil {
				return reply, sent, err
			}
		}
		one := *req
		one.Stream = l.stream
		l.turn.Lock()
		l.number++
		one.Session, one.Number = l.session, l.number
		l.turn.Unlock()
		var tried bool
		reply, tried, err = l.exchange(ctx, &one)
		sent = sent || tried
		if !again || err != nil || reply.Error == nil || reply.Error.ID != string(fault.ClusterReplayed) {
			return reply, sent, err
		}
	}
}

// has reports whether there is a session.
func (l *line) has() bool {
	l.turn.Lock()
	defer l.turn.Unlock()
	return l.session != ""
}

// begin starts the session that an answer names.
func (l *line) begin(out *answer) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if out.Session != "" && out.Session != l.session {
		l.session, l.number = out.Session, out.Number
	}
}

// exchange sends a request and returns its answer, after checking that the other kernel made it. sent is true if that
// kernel may have received the request.
func (l *line) exchange(ctx context.Context, req *request) (_ *answer, sent bool, _ error) {
	req.From, req.To, req.Instance, req.Epoch = l.Name, l.to, l.Instance, l.Epoch
	member, err := l.members.Find(l.to)
	if err != nil {
		return nil, false, err
	}
	if !l.conn.IsConnected() { // NATS would buffer the message
		return nil, false, fmt.Errorf("the bus %w", errAway)
	}
	m, err := seal(l.Key, RequestSubject(l.to), requestPurpose, nil, req)
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	reply, err := l.conn.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrConnectionClosed):
		return nil, false, fmt.Errorf("the kernel %s %w", l.to, errAway)
	case err != nil:
		return nil, true, fault.ClusterBus.New("the kernel %s has not answered: %v", l.to, err)
	}
	refuse := func(f *fault.Fault) (*answer, bool, error) {
		l.refuse(l.to, true, f)
		return nil, true, f
	}
	if _, ok := l.members.signer(member, answerPurpose, m.Data, reply); !ok {
		return refuse(fault.ClusterSigned.New("the answer is not signed by the key that %s knows of the kernel %s", l.Name, l.to))
	}
	value, invalid := answers.Decode(reply.Data)
	if invalid != nil {
		return refuse(fault.ClusterRequest.New("the answer of %s does not have its form: %s", l.to, invalid.Message))
	}
	out := value.(*answer)
	if out.From != l.to {
		return refuse(fault.ClusterRequest.New("the answer of %s names the kernel %q", l.to, fault.Clip(out.From)))
	}
	l.begin(out)
	return out, true, nil
}
