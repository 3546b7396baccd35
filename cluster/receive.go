package cluster

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// sessionLife is how long a session lasts. An older request cannot be made again, whatever else goes wrong.
	sessionLife = time.Hour
	// maxHandled is how many requests of other kernels are handled at a time, and maxHandledEach how many of one of them.
	// What is beyond is dropped: the other kernel makes it again. Calls are made side by side, so there may be more of them.
	maxHandled, maxHandledEach, maxCallsEach = 64, 4, 32
	// handleTime is how long a request may take. A letter that waits for more, such as an approval, is not taken for now.
	handleTime = 4 * time.Second
)

// receiver answers the requests of other kernels.
type receiver struct {
	*Link
	slots chan struct{}

	mu      sync.Mutex
	peers   map[string]*caller // by name and stream
	flights map[string]*flight // calls that are being made, by kernel, instance, epoch and number
}

// caller is another kernel that makes requests.
type caller struct {
	turn    sync.Mutex // one request at a time
	waiting int        // requests that wait for their turn or have it
	session string
	begun   time.Time
	number  int64  // the last that was taken; of calls, the highest
	taken   uint64 // of calls: which of the numbers before the highest were taken, a bit each
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

func (r *receiver) handle(m *nats.Msg) {
	if !isInbox(m.Reply) {
		r.refuse("", false, fault.ClusterRequest.New("a request wants its answer at %q, which is no inbox of a kernel", fault.Clip(m.Reply)))
		return
	}
	value, invalid := requests().Decode(m.Data)
	if invalid != nil {
		r.refuse("", false, fault.ClusterRequest.New("a request does not have its form: %s", invalid.Message))
		return // there is no kernel to answer
	}
	req := value.(*request)
	from, out := r.requester(req, m)
	if out.Error == nil {
		ctx, cancel := context.WithTimeout(r.ctx, handleTime)
		defer cancel()
		out = r.answer(ctx, from, req)
	}
	if out == nil {
		return
	}
	out.From = r.Name
	reply, err := seal(r.Key, m.Reply, answerPurpose, m.Data, out)
	if err == nil {
		err = r.conn.PublishMsg(reply)
	}
	if err != nil {
		r.Log.Warn("request not answered", "kernel", req.From, "error", err)
	}
}

// requester is the kernel that signed a request. An answer with an error says why the request is refused.
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

// answer handles a request; nil: too many of its requests wait.
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
		out.Outcomes = r.accept(ctx, from, req)
	default:
		r.call(ctx, from, req, out)
	}
	return out
}

// admit takes a request in the caller's session, once. take is false if there is nothing to do. c is locked.
func (r *receiver) admit(c *caller, req *request) (out *answer, take bool) {
	if c.session == "" || time.Since(c.begun) > sessionLife {
		c.session, c.begun, c.number, c.taken = rand.Text(), time.Now(), 0, 0
	}
	out = &answer{Session: c.session, Number: c.number}
	switch {
	case req.Session == "" && len(req.Letters) == 0 && req.Errand == nil && req.Query == nil: // it asks for the session
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

// take reports whether a number of the session is new: letters come one after the other, calls side by side, so that up to 63
// others may overtake one.
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

// accept has the letters accepted: those for one process one after the other, up to the first that is not taken for now.
func (r *receiver) accept(ctx context.Context, from *Requester, req *request) []outcome {
	lanes := map[int64][]*schema.Posted{}
	for i := range req.Letters {
		l := &req.Letters[i]
		lanes[l.ReceiverPID] = append(lanes[l.ReceiverPID], l)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var list []outcome
	turns := make(chan struct{}, maxLanes)
	for _, lane := range lanes {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			for _, l := range lane {
				o, more := r.one(ctx, from, req, l)
				mu.Lock()
				list = append(list, o)
				mu.Unlock()
				if !more {
					return
				}
			}
		})
	}
	all.Wait()
	return list
}

// one has a letter accepted. more says whether the next one for that process may be: the order has to hold.
func (r *receiver) one(ctx context.Context, from *Requester, req *request, l *schema.Posted) (o outcome, more bool) {
	in := &schema.AcceptInput{Kernel: req.From, Instance: req.Instance, Epoch: req.Epoch, Posted: *l}
	out, err := r.kernel.Accept(ctx, from, in)
	if err != nil {
		f := fault.Of(err)
		return outcome{MsgID: l.MsgID, Error: failureOf(f)}, !passing(f)
	}
	return outcome{MsgID: l.MsgID, Status: out.Status, Reason: out.Reason}, true
}

// passing reports whether what was refused for an error may succeed later.
func passing(f *fault.Fault) bool {
	switch f.Kind {
	case fault.QuotaExceeded, fault.Unavailable, fault.Timeout, fault.Pending, fault.Insufficient:
		return true
	}
	return f.ID == fault.CallCancelled
}
