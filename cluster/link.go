package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Kernel is what a Link needs of its kernel. Its methods are safe for concurrent use.
type Kernel interface {
	// Accept puts a letter of a member into a mailbox, as the process of that member. It calls waits, on any goroutine and
	// perhaps several times, when the letter waits for a decision of people.
	Accept(ctx context.Context, from *Requester, in *schema.AcceptInput, waits func()) (*schema.AcceptOutput, error)
	// Taken reports whether a letter was put into a mailbox, by the record and whatever has happened since.
	Taken(ctx context.Context, in *schema.TakenInput) (bool, error)
	// Run makes a call for a member once, as the process of that member: it does not repeat a call that was made before.
	Run(ctx context.Context, from *Requester, instance string, epoch int64, call *schema.Errand) (data []byte, err error)
	// Ask makes a query for a member: as its operator if the line of the members file gives a role, otherwise as its
	// process. seq is the query's entry.
	Ask(ctx context.Context, from *Requester, typ string, data []byte) (answer []byte, seq uint64, err error)
	// EndIntent journals the outcome of an intent that no call waits for.
	EndIntent(intent uint64, data []byte, failed *fault.Fault)
	// OpenVariables opens the variables of a program's environment that the record has sealed.
	OpenVariables(env map[string]string) (map[string]string, error)
	// Note journals a command of the kernel itself. An entry made afterwards follows it.
	Note(schema.Request)
	// Tick returns the present tick.
	Tick() int64
}

// Link carries requests between this kernel and others. The kernel's outbox stores them: a letter that was given to Post
// stays there until it has an outcome, and is sent again after a restart.
type Link struct {
	Options
	Instance string // of the kernel's state directory
	Epoch    int64  // of the journal

	kernel  Kernel
	members *Members
	conn    *nats.Conn
	leads   func() bool // whether this host leads the kernel: no other host can, as far as is known
	sub     *nats.Subscription
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	peers   map[string]*peer
	parcels map[int64]*parcel // those that a call waits for, by number
	lines   map[string]*line  // of calls, by kernel
	errands map[int64]*errand // those without outcome, by number

	refusals refusals
}

func newLink(o Options, members *Members, conn *nats.Conn, leads func() bool) *Link {
	l := &Link{Options: o, members: members, conn: conn, leads: leads, peers: map[string]*peer{}, parcels: map[int64]*parcel{}, lines: map[string]*line{}, errands: map[int64]*errand{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// Left is the unfinished work of the previous run of a kernel.
type Left struct {
	Letters []*schema.Letter
	Errands []*schema.Errand
	Intents map[int64]uint64 // of errands, by number: the entry whose outcome is missing
}

// start begins to send and to answer, with the unfinished work of the previous run.
func (l *Link) start(k Kernel, instance string, epoch int64, left Left) (err error) {
	l.kernel, l.Instance, l.Epoch = k, instance, epoch
	for _, letter := range left.Letters {
		l.peer(letter.Kernel).add(&parcel{Letter: letter, tried: true})
	}
	for _, e := range left.Errands {
		l.resume(e, left.Intents[e.Number])
	}
	r := &receiver{Link: l, slots: make(chan struct{}, maxHandled), peers: map[string]*caller{}, flights: map[string]*flight{}, busy: map[string]map[int64]bool{}}
	if l.sub, err = l.conn.Subscribe(RequestSubject(l.Name), r.received); err != nil {
		return fault.ClusterBus.New("this kernel cannot be reached by others: %v", err)
	}
	return nil
}

// close ends the link. Letters and calls without an outcome stay in the outbox.
func (l *Link) close() {
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	if l.sub != nil {
		if err := l.sub.Unsubscribe(); err != nil {
			l.Log.Debug("unsubscribe", "error", err)
		}
		l.sub = nil
	}
	l.running.Wait()
}

// Reach returns why nothing can be sent to a kernel.
func (l *Link) Reach(kernel string) *fault.Fault {
	if kernel == l.Name {
		return fault.ClusterSelf.New("this is the kernel %s", kernel)
	}
	if _, err := l.members.Find(kernel); err != nil {
		return fault.Of(err)
	}
	return nil
}

// Post sends a letter that is in the outbox and on disk. Callers post letters in the order of their numbers. Post does not
// block.
func (l *Link) Post(letter *schema.Letter) {
	p := &parcel{Letter: letter, waited: true, done: make(chan result, 1)}
	l.mu.Lock()
	l.parcels[letter.MsgID] = p
	l.mu.Unlock()
	l.peer(letter.Kernel).add(p)
}

// patience is how long a call waits for the other kernel.
const patience = 3 * time.Second

// Wait waits up to patience for the outcome of a posted letter. If there is none, the status is queued.
func (l *Link) Wait(ctx context.Context, msgID int64) (status, reason string, err error) {
	l.mu.Lock()
	p := l.parcels[msgID]
	delete(l.parcels, msgID)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case r := <-p.done:
		return r.status, r.reason, r.err
	case <-ctx.Done():
	}
	l.peer(p.Kernel).leave(p)
	select {
	case r := <-p.done: // it arrived at the same time
		return r.status, r.reason, r.err
	default:
		return schema.MailQueued, "the kernel " + p.Kernel + " has not answered yet", nil
	}
}

// peer returns the sender for a kernel, and starts it if there is none.
func (l *Link) peer(kernel string) *peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[kernel]
	if p == nil {
		p = &peer{line: line{Link: l, to: kernel}, lanes: map[int64]*lane{}, wake: make(chan struct{}, 1)}
		l.peers[kernel] = p
		if l.ctx.Err() == nil {
			l.running.Go(p.run)
		}
	}
	return p
}

// background runs work that close waits for; ok is false if the link has ended.
func (l *Link) background(work func()) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.running.Go(work)
	return true
}

// queued returns how many letters wait for a kernel, and why the last attempt failed, or "".
func (l *Link) queued(kernel string) (n int64, trouble string) {
	l.mu.Lock()
	p := l.peers[kernel]
	l.mu.Unlock()
	if p == nil {
		return 0, ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, lane := range p.lanes {
		n += int64(len(lane.parcels))
	}
	return n, p.trouble
}

const (
	// refusalWindow and refusalsEach limit how many refusals are journaled and logged, since any user of the bus can cause
	// them.
	refusalWindow = time.Minute
	refusalsEach  = 10
)

// refusals counts the refusals that were journaled in a window.
type refusals struct {
	mu    sync.Mutex
	begun time.Time
	told  int
	more  int64
}

// refuse journals and logs that a request was refused. sent is true for a request of this kernel.
func (l *Link) refuse(kernel string, sent bool, why *fault.Fault) {
	r := &l.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.begun) > refusalWindow {
		r.begun, r.told = now, 0
	}
	if r.told == refusalsEach {
		r.more++
		return
	}
	r.told++
	l.Log.Warn("request refused", "kernel", fault.Clip(kernel), "sent", sent, "error", why, "more", r.more)
	l.kernel.Note(schema.ClusterRefused.With(&schema.RefusedInput{
		Kernel: fault.Clip(kernel), Sent: sent, ErrorID: string(why.ID), Reason: why.Message, More: r.more,
	}))
	r.more = 0
}
