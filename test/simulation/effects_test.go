package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// The bounds of effects that run concurrently: for each process, and in total (docs/operations.md).
const (
	mostEach = 16
	mostRun  = 64
)

// effects is the runner of Http.Fetch, across restarts of the kernel. Each effect runs until the seed ends it, or its context ends.
type effects struct {
	mu      sync.Mutex
	running []*effect          // in the order of their beginning
	byID    map[string]*effect // by the id of the message that requested it
	fresh   []*effect          // not checked by the oracle yet
	err     error
}

// effect is an effect that has begun.
type effect struct {
	job   kernel.Job
	end   chan string // receives the way in which it ends
	ended bool
	data  []byte // what the runner returned
	err   error
}

// The ways in which an effect ends, weighted.
var ways = []string{"reply", "reply", "reply", "long", "fail", "panic", "junk"}

func newEffects() *effects { return &effects{byID: make(map[string]*effect)} }

// run is the kernel.Runner of Http.Fetch.
func (x *effects) run(ctx context.Context, job *kernel.Job) ([]byte, error) {
	e := &effect{job: *job, end: make(chan string)}
	x.begin(e)
	way := "cancel"
	select {
	case way = <-e.end:
	case <-ctx.Done():
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running = slices.DeleteFunc(x.running, func(o *effect) bool { return o == e })
	e.ended = true
	switch way {
	case "reply":
		e.data = fmt.Appendf(nil, `{"by":%q}`, job.ID)
	case "long":
		e.data = fmt.Appendf(nil, `{"by":%q,"body":%q}`, job.ID, strings.Repeat("y", 2*schema.MaxLine))
	case "fail":
		e.err = fault.HTTPUpstream.New("no luck")
	case "cancel":
		e.err = context.Cause(ctx)
	case "panic":
		e.err = errors.New("it panics")
		panic("as the seed wants it")
	case "junk":
		e.err = errors.New("it is no JSON")
		return []byte("{"), nil
	}
	return e.data, e.err
}

func (x *effects) begin(e *effect) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byID[e.job.ID] != nil {
		x.err = fmt.Errorf("the effect of %s is done twice", e.job.ID)
	}
	x.byID[e.job.ID] = e
	x.running, x.fresh = append(x.running, e), append(x.fresh, e)
	own := 0
	for _, o := range x.running {
		if o.job.PID == e.job.PID {
			own++
		}
	}
	if own > mostEach || len(x.running) > mostRun {
		x.err = fmt.Errorf("%d effects run, %d of process %d", len(x.running), own, e.job.PID)
	}
}

// judge checks the effects that have begun since the last call.
func (x *effects) judge(o *oracle, disk *faultfs.Disk) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.fresh {
		if err := o.starts(e, disk); err != nil && x.err == nil {
			x.err = err
		}
	}
	x.fresh = nil
	return x.err
}

// forget drops the unchecked effects, because the power was cut.
func (x *effects) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fresh = nil
}

// fetchData is the data of a request that has an effect.
const fetchData = `{"url":"https://far.local/"}`

// finish ends a running effect in a way that the seed draws. It returns false if none runs.
func (w *world) finish() bool {
	w.effects.mu.Lock()
	n := len(w.effects.running)
	if n == 0 {
		w.effects.mu.Unlock()
		return false
	}
	e := w.effects.running[w.r.IntN(n)]
	w.effects.mu.Unlock()
	way := ways[w.r.IntN(len(ways))]
	w.note("effect of %s ends: %s", e.job.ID, way)
	e.end <- way
	synctest.Wait()
	return true
}

// crowd requests more effects than may run concurrently, each on a separate connection.
func (w *world) crowd() {
	many := 17 + w.r.IntN(8)
	before := len(w.clients)
	for range many {
		w.connect(kernel.Operator)
		c := w.clients[len(w.clients)-1]
		q := w.request(c, "Http.Fetch")
		w.frame(q, fetchData)
		w.note("client %d sends %s", c.number, q.id)
		c.send(q)
		c.link.arrive(len(c.link.flying))
	}
	w.settle()
	for i := 0; w.err == nil && len(w.clients) > before && i < many; i++ {
		c := w.clients[len(w.clients)-1]
		c.link.end()
		w.leave(c)
	}
}

// starts checks an effect at its beginning: its intent must be durable.
func (o *oracle) starts(e *effect, disk *faultfs.Disk) error {
	intent := o.byID[e.job.ID]
	if intent == nil || !intent.intends() {
		return fmt.Errorf("the effect of %s begins without an intent", e.job.ID)
	}
	if intent.seq > o.durable {
		o.look(disk)
	}
	if intent.seq > o.durable {
		return fmt.Errorf("the effect of %s begins before entry %d is durable", e.job.ID, intent.seq)
	}
	return nil
}

// intends reports whether an entry of Http.Fetch is an intent.
func (e *entry) intends() bool { return e.outcome.Err == nil && e.outcome.Repeats == 0 }

// fetched checks and records an entry of Http.Fetch.
func (o *oracle) fetched(e *entry, m *schema.Message) error {
	key := m.Meta.IdempotencyKey
	first := o.fetches[key]
	switch {
	case e.outcome.Repeats > 0:
		switch {
		case key == "" || first == nil:
			return errors.New("repeats what was never asked for")
		case first.end != nil && e.outcome.Repeats == first.end.seq: // repeats the effect's end
			if !sameOutcome(e, first.end) {
				return fmt.Errorf("does not repeat the outcome of entry %d", first.seq)
			}
		case e.outcome.Repeats != first.seq || e.outcome.Err == nil: // the outcome is unknown
			return fmt.Errorf("repeats entry %d, want the outcome of %d", e.outcome.Repeats, first.seq)
		}
	case e.outcome.Err != nil:
	case key != "" && first != nil && !first.free:
		return fmt.Errorf("begins the effect again that entry %d has begun under the same key", first.seq)
	default:
		o.open[e.seq], o.entries[e.seq-1].hidden = e, true
		if e.id = m.Meta.ID; key != "" {
			o.fetches[key] = e
		}
	}
	return nil
}

// ends checks and records the end of an effect.
func (o *oracle) ends(e *entry, m *schema.Message) error {
	end := schema.EndOf(m)
	if end == nil {
		return errors.New("is no end of an effect")
	}
	intent := o.open[uint64(end.Intent)]
	if intent == nil {
		return fmt.Errorf("ends entry %d, which has ended or is no intent", end.Intent)
	}
	delete(o.open, intent.seq)
	intent.end, intent.free = e, !end.Ran
	shown := &o.entries[e.seq-1] // the audit log shows the end as the call that it ends
	shown.typ, shown.pid = intent.typ, intent.pid
	o.effects.mu.Lock()
	defer o.effects.mu.Unlock()
	done := o.effects.byID[intent.id]
	switch {
	case end.Unknown && e.outcome.Err == nil:
		return errors.New("is unknown, and succeeded")
	case end.Unknown:
	case !end.Ran && done != nil:
		return errors.New("says that the effect has not been begun")
	case !end.Ran:
	case done == nil || !done.ended:
		return errors.New("ends an effect that has not ended")
	case (done.err == nil) != (e.outcome.Err == nil) || done.err == nil && !bytes.Equal(done.data, e.outcome.Data):
		return fmt.Errorf("the runner returned another outcome: %s, %w", done.data, done.err)
	}
	return nil
}

// noneOpen checks that every intent has an outcome after a start.
func (o *oracle) noneOpen() error {
	for seq := range o.open {
		return fmt.Errorf("%d intents have no outcome after a start, one of them entry %d", len(o.open), seq)
	}
	return nil
}

// outcomeOf returns the entry that determines the answer to q: for an effect, its end instead of its intent; nil if it has not ended.
func (o *oracle) outcomeOf(q *request, e *entry) *entry {
	if q.typ != "Http.Fetch" || e == nil || !e.intends() {
		return e
	}
	return e.end
}
