package cluster

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// requestTime is how long the other kernel may take for a request.
	requestTime = 5 * time.Second
	// maxLetters and maxBytes bound a request: letters, and their encoded bytes unless one letter has more.
	maxLetters, maxBytes = 256, 700_000
	// minRetry and maxRetry bound the time between two attempts.
	minRetry, maxRetry = 100 * time.Millisecond, 2 * time.Second
)

// longer returns the time until the next attempt, after one that came a pause after the one before it.
func longer(pause time.Duration) time.Duration { return min(max(2*pause, minRetry), maxRetry) }

// result is the outcome of a letter.
type result struct {
	status, reason string
	err            error
}

// parcel is a letter that is being sent.
type parcel struct {
	*schema.Letter
	size    int         // of the letter, encoded
	tried   bool        // the other kernel may have received it
	sending bool        // it is in the request that is being made
	ended   bool        // it is settled: an outcome that arrives later changes nothing
	waited  bool        // a call waits for the result, on done
	done    chan result // buffered: one result
}

// lane has the letters for one process, in the order of their numbers. A letter is sent when all letters before it have an
// outcome.
type lane struct {
	parcels []*parcel
	since   time.Time // of the latest attempt in which none was accepted
	pause   time.Duration
}

// peer sends letters to one kernel, one request at a time.
type peer struct {
	line
	wake chan struct{} // buffered: a letter was added

	mu      sync.Mutex
	lanes   map[int64]*lane
	last    int64  // the process whose letters were the first of the latest request: others are the first of the next
	most    int    // letters in a request, after one did not pass; 0: maxLetters
	trouble string // why the latest attempt failed; "": it succeeded

	pause time.Duration
}

// add appends a letter to its lane.
func (p *peer) add(one *parcel) {
	one.size = encodedSize(one.Letter)
	p.mu.Lock()
	l := p.lanes[one.ReceiverPID]
	if l == nil {
		l = new(lane)
		p.lanes[one.ReceiverPID] = l
	}
	l.parcels = append(l.parcels, one)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// leave records that no call waits for a letter.
func (p *peer) leave(one *parcel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.waited = false
}

// run sends until the link ends.
func (p *peer) run() {
	for p.ctx.Err() == nil {
		batch, wait := p.next(time.Now())
		if len(batch) == 0 {
			p.rest(wait)
			continue
		}
		switch err := p.send(batch); {
		case err == nil:
			p.pause = 0
			p.failed("")
		case p.ctx.Err() != nil:
			return
		default:
			p.pause = longer(p.pause)
			p.failed(err.Error())
			p.rest(p.pause)
		}
	}
}

func (p *peer) failed(trouble string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = trouble
}

// rest waits for d, or until a letter is added. If d is 0, it waits without a limit.
func (p *peer) rest(d time.Duration) {
	var late <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-p.wake:
	case <-late:
	case <-p.ctx.Done():
	}
}

// next returns the letters of the next request. If there are none, wait is the time until one can be sent. Each request begins with the
// letters for another process, so that many letters for one do not keep those for others from being sent.
func (p *peer) next(now time.Time) (batch []*parcel, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.Room()
	left := min(room, maxBytes)
	for _, pid := range p.inTurn() {
		l := p.lanes[pid]
		p.expire(l)
		p.sendBack(l, room)
		if len(l.parcels) == 0 {
			delete(p.lanes, pid)
			continue
		}
		if rest := l.since.Add(l.pause).Sub(now); l.pause > 0 && rest > 0 {
			if wait == 0 || rest < wait {
				wait = rest
			}
			continue
		}
		for _, one := range l.parcels {
			if one.size > room || len(batch) > 0 && (len(batch) >= cmp.Or(p.most, maxLetters) || one.size > left) {
				break // the later ones must not overtake it
			}
			if len(batch) == 0 {
				p.last = pid
			}
			batch, left = append(batch, one), left-one.size
		}
		if l.parcels[0].size > room && (wait == 0 || wait > maxRetry) {
			wait = maxRetry // another node may carry it
		}
	}
	return batch, wait
}

// inTurn returns the processes that have letters, ascending from the one after the last, and around.
func (p *peer) inTurn() []int64 {
	all := slices.Sorted(maps.Keys(p.lanes))
	at, _ := slices.BinarySearch(all, p.last+1)
	return slices.Concat(all[at:], all[:at])
}

// sendBack settles letters at the head of a lane that are longer than the bus carries, and were never sent. One that was sent may have
// arrived, when the bus carried more: it waits until the bus does again, or the operator drops it. p is locked.
func (p *peer) sendBack(l *lane, room int) {
	for len(l.parcels) > 0 && !l.parcels[0].tried && l.parcels[0].size > room {
		p.settle(l.parcels[0], "", "", errTooLarge(l.parcels[0].size, room))
		l.parcels = l.parcels[1:]
	}
}

// halve has the next request have half the letters of one that did not pass. One letter that does not pass is too long.
func (p *peer) halve(batch []*parcel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most = len(batch) / 2; p.most == 0 {
		batch[0].size = MaxMessage
	}
}

// expire settles letters at the head of a lane that expired before they were sent. The other kernel reports the outcome of
// those that were sent. p is locked.
func (p *peer) expire(l *lane) {
	for len(l.parcels) > 0 && !l.parcels[0].tried && p.ticksLeft(l.parcels[0]) < 0 {
		p.settle(l.parcels[0], schema.MailExpired, "it expired before the kernel "+p.to+" could be reached", nil)
		l.parcels = l.parcels[1:]
	}
}

// ticksLeft returns the ticks until a letter expires; 0 if it does not expire.
func (p *peer) ticksLeft(one *parcel) int64 {
	if one.ExpiresAtTick == nil {
		return 0
	}
	return *one.ExpiresAtTick - p.kernel.Tick()
}

// settle journals the outcome of a letter, and passes it to the call that waits for it. p is locked.
func (p *peer) settle(one *parcel, status, reason string, failed *fault.Fault) {
	in := &schema.SettleInput{MsgID: one.MsgID, ReceiverPID: one.ReceiverPID, Kernel: p.to, Status: status, Reason: reason}
	r := result{status: status, reason: reason}
	if failed != nil {
		in.Status, in.Reason, in.ErrorID = schema.MailRefused, fault.Clip(failed.Message), string(failed.ID)
		r = result{err: failed}
	}
	one.ended = true
	p.kernel.Note(schema.IPCSettle.With(in))
	if status == schema.MailDropped {
		r = result{err: fault.ClusterDropped.New("message %d to the kernel %s: %s", one.MsgID, p.to, reason)}
	}
	if one.waited {
		one.waited = false
		one.done <- r
	}
}

// errAway says that the other kernel, or the bus, cannot be reached: no request was made.
var errAway = errors.New("cannot be reached")

// send makes a request, and settles the letters that have an outcome.
func (p *peer) send(batch []*parcel) error {
	reply, err := p.ask(batch)
	switch {
	case errors.Is(err, errAway):
		p.queue(err.Error())
		return err
	case errors.Is(err, fault.ClusterTooLarge):
		p.halve(batch)
		return nil
	case err != nil:
		return err
	case reply.Error != nil:
		f := reply.Error.fault()
		p.refuse(p.to, true, f)
		p.refused(batch, f)
		return f
	}
	p.conclude(batch, reply.Outcomes)
	p.widen()
	return nil
}

// widen lets requests have more letters again after one that passed.
func (p *peer) widen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most *= 2; p.most >= maxLetters {
		p.most = 0
	}
}

// ask makes a request with letters.
func (p *peer) ask(batch []*parcel) (*answer, error) {
	req := &request{Letters: make([]posted, len(batch))}
	p.mu.Lock()
	for i, one := range batch {
		req.Letters[i] = posted{Posted: one.Posted, Again: one.tried}
		one.sending = true
		if one.ExpiresAtTick != nil {
			left := p.ticksLeft(one)
			req.Letters[i].TicksLeft = &left
		}
	}
	p.mu.Unlock()
	reply, sent, err := p.request(p.ctx, req)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range batch {
		one.sending, one.tried = false, one.tried || sent
	}
	return reply, err
}

// conclude settles the letters that have an outcome, and keeps the rest.
func (p *peer) conclude(batch []*parcel, outcomes []outcome) {
	byID := make(map[int64]*outcome, len(outcomes))
	for i := range outcomes {
		byID[outcomes[i].MsgID] = &outcomes[i]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	settled := map[*parcel]bool{}
	waits := map[int64]bool{}
	for _, one := range batch {
		o := byID[one.MsgID]
		if one.ended {
			continue
		}
		if o == nil || waits[one.ReceiverPID] {
			waits[one.ReceiverPID] = true
			continue
		}
		if o.Error == nil && !isOutcome(o.Status) {
			p.refuse(p.to, true, fault.ClusterRequest.New("%s answers that a message is %q, which is no outcome", p.to, fault.Clip(o.Status)))
			waits[one.ReceiverPID] = true
			continue
		}
		if o.Error == nil {
			settled[one] = true
			p.settle(one, o.Status, fault.Clip(o.Reason), nil)
			continue
		}
		f := o.Error.fault()
		// A call that waits gets the error that the mailbox is full; a queued message is sent again later.
		if verdictOf(f) != nothingDone && !(one.waited && f.ID == fault.IpcMailboxFull) {
			waits[one.ReceiverPID] = true
			continue
		}
		settled[one] = true
		p.settle(one, "", "", f)
	}
	for _, pid := range slices.Sorted(maps.Keys(p.lanes)) {
		l := p.lanes[pid]
		before := len(l.parcels)
		l.parcels = slices.DeleteFunc(l.parcels, func(one *parcel) bool { return settled[one] })
		switch {
		case !waits[pid]:
			l.pause = 0
		case len(l.parcels) < before:
			l.since, l.pause = time.Now(), minRetry
		default:
			l.since, l.pause = time.Now(), longer(l.pause)
		}
	}
}

// isOutcome reports whether a status is an outcome of a letter. Others must not be journaled, since a start would refuse
// the entry.
func isOutcome(status string) bool {
	return status == schema.MailDelivered || status == schema.MailExpired || status == schema.MailBlocked
}

// queue ends the waiting of all calls: their letters are queued. Also those that did not fit the request.
func (p *peer) queue(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		for _, one := range l.parcels {
			p.leaveQueued(one, why)
		}
	}
}

// leaveQueued ends the waiting of a call. p is locked.
func (p *peer) leaveQueued(one *parcel, why string) {
	if one.waited {
		one.waited = false
		one.done <- result{status: schema.MailQueued, reason: why}
	}
}

// refused handles that the other kernel refuses the requests of this one. A letter that was never sent and that a call waits
// for ends with the error. The others stay: one that was sent may have arrived before this refusal, and for one that is
// queued the operator of the other kernel may change that.
func (p *peer) refused(batch []*parcel, why *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if verdictOf(why) != nothingDone {
		return
	}
	ended := map[*parcel]bool{}
	for _, one := range batch {
		if one.waited && !one.tried && !one.ended {
			ended[one] = true
			p.settle(one, "", "", why)
		} else {
			p.leaveQueued(one, "the kernel "+p.to+" answers: "+fault.Clip(why.Message))
		}
	}
	for _, l := range p.lanes {
		l.parcels = slices.DeleteFunc(l.parcels, func(one *parcel) bool { return ended[one] })
	}
}
