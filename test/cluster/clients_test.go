package cluster_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/promptware-os/pwos/internal/testkit"
)

// history is what clients have seen.
type history struct {
	begun        time.Time
	generation   atomic.Int64 // of the keys: a new one after each fault, so that the history of a key stays short
	acknowledged atomic.Int64 // sets
	by           [2]atomic.Int64
	refused      atomic.Int64 // attempts at sets that were answered with an error
	unanswered   atomic.Int64 // attempts at sets that were not answered
	leader       atomic.Int32 // the host that has acknowledged last

	mu       sync.Mutex
	sets     []set
	calls    []porcupine.Operation
	findings []string
}

func newHistory() *history { return &history{begun: time.Now()} }

// set is one that was acknowledged.
type set struct {
	key, value string
	seq        uint64
	host       int
}

// op is what porcupine is told of a call: a value that was set, or that a get returned.
type op struct {
	key, value string
	set        bool
}

func (h *history) now() int64 { return int64(time.Since(h.begun)) }

// key is one that the clients use at present; now and then an older one.
func (h *history) key(rng *rand.Rand) string {
	generation := h.generation.Load()
	if rng.IntN(16) == 0 {
		generation = rng.Int64N(generation + 1)
	}
	return fmt.Sprintf("k%d-%d", generation, rng.IntN(keysAtATime))
}

const keysAtATime = 3

func (h *history) found(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.findings = append(h.findings, fmt.Sprintf(format, args...))
}

func (h *history) acknowledge(id int, s set, begin int64) {
	h.mu.Lock()
	h.sets = append(h.sets, s)
	h.calls = append(h.calls, porcupine.Operation{ClientId: id, Input: op{s.key, s.value, true}, Call: begin, Return: h.now(), Output: ""})
	h.mu.Unlock()
	h.leader.Store(int32(s.host))
	h.by[s.host].Add(1)
	h.acknowledged.Add(1)
}

// unknown notes a set without an outcome: it may take effect at any time.
func (h *history) unknown(id int, key, value string, begin int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{ClientId: id, Input: op{key, value, true}, Call: begin, Return: 1 << 62, Output: ""})
}

func (h *history) got(id int, key, value string, begin int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{ClientId: id, Input: op{key: key}, Call: begin, Return: h.now(), Output: value})
}

// answer is a frame of the kernel.
type answer struct {
	Kind     string          `json:"kind"`
	Data     json.RawMessage `json:"data"`
	Metadata struct {
		Error  string `json:"error"`
		Kernel struct {
			Seq          uint64 `json:"seq"`
			Acknowledged string `json:"acknowledged"`
		} `json:"kernel"`
	} `json:"metadata"`
}

// value is what a get has returned; ok is false if it was refused.
func (a *answer) value() (value string, ok bool) {
	if a.Kind != "reply" {
		return "", a.Metadata.Error == "memory.not_found"
	}
	return value, json.Unmarshal(a.Data, &value) == nil
}

// ask sends a call on a connection, and returns its answer.
func ask(conn *testkit.Conn, kind, typ, data, idempotency string) (a answer, err error) {
	if _, err = fmt.Fprintf(conn, `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"x","timestamp":1%s}}`+"\n", kind, typ, data, idempotency); err != nil {
		return a, err
	}
	line, err := conn.Line()
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	return a, err
}

// clients use the kernel until they are stopped.
type clients struct {
	*rig
	stop    chan struct{}
	running sync.WaitGroup
	ids     atomic.Int64
}

// load starts the clients: some that set and get at whichever host answers, and for each host one that keeps asking it alone.
func (r *rig) load(seed uint64) (stop func()) {
	c := &clients{rig: r, stop: make(chan struct{})}
	for range 4 {
		id := int(c.ids.Add(1))
		c.running.Go(func() { c.use(id, rand.New(rand.NewPCG(seed, uint64(id)+1))) })
	}
	for _, h := range r.hosts {
		id := int(c.ids.Add(1))
		c.running.Go(func() { c.watch(h, rand.New(rand.NewPCG(seed, uint64(id)+1))) })
	}
	stop = sync.OnceFunc(func() { close(c.stop); c.running.Wait() })
	r.t.Cleanup(stop)
	return stop
}

// pause returns false once the clients are stopped.
func (c *clients) pause(d time.Duration) bool {
	select {
	case <-c.stop:
		return false
	case <-time.After(d):
		return true
	}
}

// use sets and gets. A set is sent with the same idempotency key, to one host or the other, until one acknowledges it.
func (c *clients) use(id int, rng *rand.Rand) {
	conns := make([]*testkit.Conn, len(c.hosts))
	drop := func(at int) {
		if conns[at] != nil {
			_ = conns[at].Close()
			conns[at] = nil
		}
	}
	defer func() {
		for at := range conns {
			drop(at)
		}
	}()
	at := 0
	try := func(kind, typ, data, idempotency string) (a answer, ok bool) {
		var err error
		if conns[at] == nil {
			patience := time.Duration(200+rng.IntN(3000)) * time.Millisecond
			if conns[at], err = testkit.DialWithin(c.hosts[at].socket(), patience); err != nil {
				conns[at] = nil
				return a, false
			}
		}
		if a, err = ask(conns[at], kind, typ, data, idempotency); err != nil {
			drop(at)
		}
		return a, err == nil
	}
	for n := 0; c.pause(time.Duration(rng.IntN(8)) * time.Millisecond); n++ {
		key, value, begin := c.history.key(rng), fmt.Sprintf("%d-%d", id, n), c.history.now()
		if rng.IntN(2) == 0 {
			a, ok := try("query", "Memory.Get", `{"key":"`+key+`"}`, "")
			if got, was := a.value(); ok && was {
				c.history.got(id, key, got, begin)
			} else {
				at = rng.IntN(len(conns))
			}
			continue
		}
		for {
			a, ok := try("command", "Memory.Set", fmt.Sprintf(`{"key":%q,"value":%q}`, key, value), `,"idempotencyKey":"`+value+`"`)
			if ok && a.Kind == "reply" {
				if a.Metadata.Kernel.Acknowledged != "" {
					c.history.found("host %d has acknowledged the set of %s from its own disk", at, value)
				}
				c.history.acknowledge(id, set{key, value, a.Metadata.Kernel.Seq, at}, begin)
				break
			}
			if ok {
				c.history.refused.Add(1)
			} else {
				c.history.unanswered.Add(1)
			}
			at = rng.IntN(len(conns))
			if !c.pause(20 * time.Millisecond) {
				c.history.unknown(id, key, value, begin)
				return
			}
		}
	}
}

// unanswered is how many gets of one host may wait for their answers.
const unanswered = 40

// watch asks one host, whatever happens to it. A get that is not answered soon waits on, and others follow it: one that was stopped finds
// them when it goes on, and must not answer them with what it knew.
func (c *clients) watch(h *host, rng *rand.Rand) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	places := make(chan struct{}, unanswered)
	for c.pause(time.Duration(rng.IntN(20)) * time.Millisecond) {
		select {
		case places <- struct{}{}:
		default:
			continue
		}
		key, gets, answered := c.history.key(rng), 1+rng.IntN(20), make(chan struct{})
		waiting.Go(func() {
			defer func() { <-places }()
			defer close(answered)
			conn, err := testkit.Dial(h.socket())
			if err != nil {
				return
			}
			defer conn.Close()
			for range gets {
				begin := c.history.now()
				a, err := ask(conn, "query", "Memory.Get", `{"key":"`+key+`"}`, "")
				if err != nil {
					return
				}
				if value, ok := a.value(); ok {
					c.history.got(int(c.ids.Add(1)), key, value, begin)
				}
			}
		})
		select {
		case <-answered:
		case <-time.After(150 * time.Millisecond):
		}
	}
}

// readAll gets every key that was ever used: what was acknowledged is there at the end.
func (r *rig) readAll() {
	r.t.Helper()
	conn := testkit.Value(testkit.Dial(r.leader().socket()))(r.t)
	defer conn.Close()
	for generation := range r.history.generation.Load() + 1 {
		for i := range keysAtATime {
			key, begin := "k"+strconv.FormatInt(generation, 10)+"-"+strconv.Itoa(i), r.history.now()
			a := testkit.Value(ask(conn, "query", "Memory.Get", `{"key":"`+key+`"}`, ""))(r.t)
			value, ok := a.value()
			if !ok {
				r.t.Fatalf("the leader refuses to tell the value of %s: %s %s", key, a.Metadata.Error, a.Data)
			}
			r.history.got(0, key, value, begin)
		}
	}
}

// silence is the longest time since a moment in which no set was acknowledged.
func (h *history) silence(since time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, longest := int64(since.Sub(h.begun)), int64(0)
	for _, call := range h.calls { // in the order of their ends
		if call.Input.(op).set && call.Return != 1<<62 && call.Return > last {
			longest, last = max(longest, call.Return-last), call.Return
		}
	}
	return time.Duration(max(longest, h.now()-last))
}
