package cluster

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// sessionLife is how long a session lasts. A request of an older session is always refused.
	sessionLife = time.Hour
	// maxHandled is how many requests of other kernels are handled at a time, and maxHandledEach how many of one kernel.
	// Further ones are dropped, and the other kernel repeats them. Calls are made concurrently, so maxCallsEach is higher.
	maxHandled, maxHandledEach, maxCallsEach = 64, 4, 32
	// handleTime is how long a request may take. A letter that waits longer, such as for an approval, is not accepted for
	// now.
	handleTime = 4 * time.Second
)

// receiver answers the requests of other kernels.
type receiver struct {
	*Link
	slots chan struct{}

	mu      sync.Mutex
	peers   map[string]*caller        // by name and stream
	flights map[string]*flight        // calls in flight, by kernel, instance, epoch and number
	busy    map[string]map[int64]bool // processes whose letters are being accepted, by the kernel that sends them
}

// caller is another kernel that makes requests.
type caller struct {
	turn    sync.Mutex // held by the request that is being handled
	waiting int        // requests that wait for turn or hold it
	session string
	begun   time.Time
	number  int64  // the last that was accepted; of calls, the highest
	taken   uint64 // of calls: which of the numbers before the highest were accepted, a bit each
}

// received handles a message of the bus. It does not block.
func (r *receiver) received(m *nats.Msg) {
	select {
	case r.slots <- struct{}{}:
	default:
		return
	}
	if !r.background(func() {
		defer func() { <-r.slots }()
		r.handle(m)
	}) {
		<-r.slots
	}
}

// handle answers a request, if this host leads the kernel: before it is handled, and again when the answer is ready, since
// the host may have been frozen meanwhile. What a host does that does not lead any more, the stream refuses.
func (r *receiver) handle(m *nats.Msg) {
	if !r.leads() {
		return
	}
	if !isInbox(m.Reply) {
		r.refuse("", false, fault.ClusterRequest.New("a request wants its answer at %q, which is no inbox of a kernel", fault.Clip(m.Reply)))
		return
	}
	value, invalid := requests().DecodeUntrusted(m.Data)
	if invalid != nil {
		r.refuse("", false, fault.ClusterRequest.New("a request does not have its form: %s", invalid.Message))
		return // its sender is unknown
	}
	req := value.(*request)
	from, out := r.requester(req, m)
	if out.Error == nil {
		ctx, cancel := context.WithTimeout(r.ctx, handleTime)
		defer cancel()
		out = r.answer(ctx, from, req)
	}
	if out == nil || !r.leads() {
		return
	}
	out.From = r.Name
	err := fit(out, r.Room())
	var reply *nats.Msg
	if err == nil {
		reply, err = seal(r.Key, m.Reply, answerPurpose, m.Data, out)
	}
	if err == nil {
		err = r.conn.PublishMsg(reply)
	}
	if err != nil {
		r.Log.Warn("request not answered", "kernel", req.From, "error", err)
	}
}

// requester returns the kernel that signed a request, or an answer with the error that refuses the request.
func (r *receiver) requester(req *request, m *nats.Msg) (*Requester, *answer) {
	refused := func(err error) (*Requester, *answer) {
		f := fault.Of(err)
		r.refuse(req.From, false, f)
		return nil, &answer{Error: failureOf(f)}
	}
	if req.To != r.Name {
		return refused(fault.ClusterRequest.New("the request is for the kernel %q, and this is %s", fault.Clip(req.To), r.Name))
	}
	member, err := r.members.Find(req.From)
	if err != nil || req.From == r.Name {
		return refused(fault.ClusterNoKernel.New("no valid line of the members file of %s names the kernel %q", r.Name, fault.Clip(req.From)))
	}
	key, ok := r.members.signer(member, requestPurpose, nil, m)
	if !ok {
		return refused(fault.ClusterSigned.New("the request is not signed by the key that %s knows of the kernel %s", r.Name, req.From))
	}
	return &Requester{AuthorizedKey: member, Signer: key}, &answer{}
}

// answer handles a request. It returns nil if too many requests of the kernel wait.
func (r *receiver) answer(ctx context.Context, from *Requester, req *request) *answer {
	most := maxHandledEach
	if req.Stream == callStream {
		most = maxCallsEach
	}
	r.mu.Lock()
	c := r.peers[req.From+"/"+req.Stream]
	if c == nil {
		c = new(caller)
		r.peers[req.From+"/"+req.Stream] = c
	}
	if c.waiting == most {
		r.mu.Unlock()
		return nil
	}
	c.waiting++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		c.waiting--
		r.mu.Unlock()
	}()
	c.turn.Lock()
	out, take := r.admit(c, req)
	if !take || req.Stream == "" {
		defer c.turn.Unlock()
	} else {
		c.turn.Unlock()
	}
	switch {
	case !take:
	case req.Stream == "":
		out.Outcomes = r.accept(from, req)
	default:
		r.call(ctx, from, req, out)
	}
	return out
}

// admit accepts a request in the caller's session, once. take is false if there is nothing to do. c is locked.
func (r *receiver) admit(c *caller, req *request) (out *answer, take bool) {
	if c.session == "" || time.Since(c.begun) > sessionLife {
		c.session, c.begun, c.number, c.taken = rand.Text(), time.Now(), 0, 0
	}
	out = &answer{Session: c.session, Number: c.number}
	switch {
	case req.Session == "" && len(req.Letters) == 0 && req.Errand == nil && req.Query == nil: // it requests the session
		return out, false
	case req.Session != c.session:
		out.Error = failureOf(fault.ClusterReplayed.New("the request of %s belongs to an earlier session", req.From))
	case !c.take(req):
		out.Error = failureOf(fault.ClusterReplayed.New("the request %d of %s was made before", req.Number, req.From))
	}
	if out.Error != nil {
		r.refuse(req.From, false, out.Error.fault())
		return out, false
	}
	out.Number = req.Number
	return out, true
}

// take reports whether a number of the session is new. Letters are sent one after the other. Calls are sent concurrently,
// so up to 63 others may overtake one.
func (c *caller) take(req *request) bool {
	if req.Stream == "" {
		if req.Number <= c.number {
			return false
		}
		c.number = req.Number
		return true
	}
	if ahead := req.Number - c.number; ahead > 0 {
		c.taken = c.taken<<min(ahead, 64) | 1 // bit 0 is the highest
		c.number = req.Number
		return true
	}
	behind := c.number - req.Number
	if behind >= 64 || req.Number < 1 || c.taken&(1<<behind) != 0 {
		return false
	}
	c.taken |= 1 << behind
	return true
}
