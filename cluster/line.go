package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
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
	open    bool  // the latest answer was of the session: the next request need not ask for one first
}

// request makes a request in the present session. If that has ended, after a restart of the other kernel or by age, it
// repeats the request in a new one. sent is true if the other kernel may have received it: a session is of one host, so
// that host alone can have done what was sent, and an error of any other one is no outcome.
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
		if err != nil || reply.Error != nil && reply.Error.ID != string(fault.ClusterReplayed) {
			l.suspend()
		}
		if !again || err != nil || reply.Error == nil || reply.Error.ID != string(fault.ClusterReplayed) {
			return reply, sent, err
		}
	}
}

// has reports whether there is a session.
func (l *line) has() bool {
	l.turn.Lock()
	defer l.turn.Unlock()
	return l.open
}

// suspend has the next request ask for the session first. If the other kernel refuses that, or cannot be reached, nothing
// else was sent to it.
func (l *line) suspend() {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.open = false
}

// begin starts or continues the session that an answer names.
func (l *line) begin(out *answer) {
	l.turn.Lock()
	defer l.turn.Unlock()
	switch out.Session {
	case "":
		return
	case l.session: // requests that were made meanwhile may still be on their way
		l.number = max(l.number, out.Number)
	default:
		l.session, l.number = out.Session, out.Number
	}
	l.open = true
}

// exchange sends a request and returns its answer, after checking that the other kernel made it. sent is true if that
// kernel may have received the request.
func (l *line) exchange(ctx context.Context, req *request) (_ *answer, sent bool, _ error) {
	req.From, req.To, req.Instance, req.Epoch = l.Name, l.to, l.Instance, l.Epoch
	member, err := l.members.Find(l.to)
	if err != nil {
		return nil, false, err
	}
	if !l.leads() {
		return nil, false, fmt.Errorf("the kernel %s %w from this host, since another one may lead the kernel %s", l.to, errAway, l.Name)
	}
	if !l.conn.IsConnected() { // NATS would buffer the message
		return nil, false, fmt.Errorf("the bus %w", errAway)
	}
	m, err := seal(l.Key, RequestSubject(l.to), requestPurpose, nil, req)
	if err != nil {
		return nil, false, err
	}
	if size := m.Size(); size > maxPayload(l.conn) {
		return nil, false, errTooLarge(size, l.Room())
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	signed := func(reply *nats.Msg) error {
		if _, ok := l.members.signer(member, answerPurpose, m.Data, reply); ok {
			return nil
		}
		f := fault.ClusterSigned.New("the answer is not signed by the key that %s knows of the kernel %s", l.Name, l.to)
		l.refuse(l.to, true, f)
		return f
	}
	reply, err := l.ask(ctx, m, signed)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrConnectionClosed):
		return nil, false, fmt.Errorf("the kernel %s %w", l.to, errAway)
	case errors.Is(err, nats.ErrMaxPayload): // another node is connected now
		return nil, false, errTooLarge(m.Size(), l.Room())
	case errors.Is(err, fault.ClusterSigned):
		return nil, true, err
	case err != nil:
		return nil, true, fault.ClusterBus.New("the kernel %s has not answered: %v", l.to, err)
	}
	refuse := func(f *fault.Fault) (*answer, bool, error) {
		l.refuse(l.to, true, f)
		return nil, true, f
	}
	value, invalid := answers().DecodeUntrusted(reply.Data)
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

// maxReplies is how many messages may wait at the inbox of a request.
const maxReplies = 64

// ask sends a request, and returns the first signed message at its inbox. It ignores unsigned ones, which another member may have sent.
// If no signed one arrives before ctx ends, the error is that of the last unsigned one.
func (l *line) ask(ctx context.Context, m *nats.Msg, signed func(*nats.Msg) error) (*nats.Msg, error) {
	lost := l.conn.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer l.conn.RemoveStatusListener(lost)
	m.Reply = InboxPrefix(l.Name) + "." + rand.Text() // those of the connection are numbered: a member that was shown one could guess the next
	replies := make(chan *nats.Msg, maxReplies)
	inbox, err := l.conn.ChanSubscribe(m.Reply, replies)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := inbox.Unsubscribe(); err != nil {
			l.Log.Debug("unsubscribe", "error", err)
		}
	}()
	if err := l.conn.PublishMsg(m); err != nil {
		return nil, err
	}
	var unsigned error
	for {
		select {
		case reply := <-replies:
			if len(reply.Data) == 0 && reply.Header.Get("Status") == noResponders {
				return nil, nats.ErrNoResponders
			}
			if err := signed(reply); err != nil {
				unsigned = err
				continue
			}
			return reply, nil
		case <-lost:
			return nil, nats.ErrDisconnected
		case <-ctx.Done():
			return nil, cmp.Or(unsigned, ctx.Err())
		}
	}
}

// noResponders is the status with which the bus answers a request that nobody has subscribed to.
const noResponders = "503"
