package cluster

import (
	"context"
	"sync"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// maxLanes is how many processes of a request are served concurrently.
	maxLanes = 16
	// maxBusy is for how many processes the letters of one kernel may wait for decisions of people. Letters for others have no
	// outcome meanwhile.
	maxBusy = 256
)

// acceptance collects the outcomes of a request's letters.
type acceptance struct {
	mu   sync.Mutex
	list []outcome
}

func (a *acceptance) add(o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, o)
}

// taken returns the outcomes so far. Later ones are lost: the sender asks again.
func (a *acceptance) taken() []outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list[:len(a.list):len(a.list)]
}

// accept passes letters to the kernel: those for one process one after the other, up to the first that is not accepted for
// now. It does not wait for one that waits for a decision of people, which delays the letters for its process only: they
// have no outcome until that decision.
func (r *receiver) accept(from *Requester, req *request) []outcome {
	lanes := map[int64][]*posted{}
	for i := range req.Letters {
		l := &req.Letters[i]
		lanes[l.ReceiverPID] = append(lanes[l.ReceiverPID], l)
	}
	out := new(acceptance)
	turns := make(chan struct{}, maxLanes)
	var all sync.WaitGroup
	for pid, lane := range lanes {
		if !r.enter(req.From, pid) {
			continue
		}
		all.Add(1)
		if !r.background(func() {
			turns <- struct{}{}
			leave := sync.OnceFunc(func() {
				<-turns
				all.Done()
			})
			defer leave()
			defer r.exit(req.From, pid) // before the request is answered, so that the next one finds it free
			r.lane(from, req, lane, out, leave)
		}) {
			r.exit(req.From, pid)
			all.Done()
		}
	}
	all.Wait()
	return out.taken()
}

// enter reserves the letters of a kernel for a process, so that no later request overtakes those that wait. It returns false
// if they are reserved.
func (r *receiver) enter(kernel string, pid int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	busy := r.busy[kernel]
	if busy == nil {
		busy = map[int64]bool{}
		r.busy[kernel] = busy
	}
	if busy[pid] || len(busy) >= maxBusy {
		return false
	}
	busy[pid] = true
	return true
}

func (r *receiver) exit(kernel string, pid int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy[kernel], pid)
}

// lane passes the letters for one process to the kernel.
func (r *receiver) lane(from *Requester, req *request, letters []*posted, out *acceptance, waits func()) {
	ctx, cancel := context.WithTimeout(r.ctx, handleTime)
	defer cancel()
	for _, l := range letters {
		o, more := r.one(ctx, from, req, l, waits)
		out.add(o)
		if !more {
			return
		}
	}
}

// one passes a letter to the kernel. more reports whether the next one for that process may follow, which keeps the order.
// A letter that was taken stays delivered, also if it would be refused now, or need another approval: the record says so.
func (r *receiver) one(ctx context.Context, from *Requester, req *request, l *posted, waits func()) (o outcome, more bool) {
	in := &schema.AcceptInput{Kernel: req.From, Instance: req.Instance, Epoch: req.Epoch, Posted: l.Posted}
	out, err := r.once(ctx, from, in, l.Again, waits)
	if err != nil {
		f := fault.Of(err)
		return outcome{MsgID: l.MsgID, Error: failureOf(f)}, verdictOf(f) == nothingDone
	}
	return outcome{MsgID: l.MsgID, Status: out.Status, Reason: out.Reason}, true
}

// once has the kernel accept a letter that it does not have.
func (r *receiver) once(ctx context.Context, from *Requester, in *schema.AcceptInput, again bool, waits func()) (*schema.AcceptOutput, error) {
	if again {
		taken, err := r.kernel.Taken(ctx, in.Mark())
		if err != nil {
			return nil, err
		}
		if taken {
			return &schema.AcceptOutput{Status: schema.MailDelivered, Known: true}, nil
		}
	}
	return r.kernel.Accept(ctx, from, in, waits)
}
