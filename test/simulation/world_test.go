package simulation_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/http"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const journalDir = "/journal"

// world is the simulation of a seed: a disk, the kernel that runs on it, and its clients.
type world struct {
	r *rand.Rand
	scenario
	log      io.Writer // receives the steps; nil: no log
	trace    hash.Hash
	step     int
	requests int
	conns    int

	disk    *faultfs.Disk
	store   *projections
	blobs   *shelf
	effects *effects
	reserve int64 // reserve of the journal, in bytes
	files   *faultfs.Failing
	gate    *faultfs.Gate
	ends    bool // a sync has failed, so the kernel must end

	cut  powerCut
	dead bool          // the power is cut: nothing counts until the next start
	left *faultfs.Disk // the disk and the store that the power cut has left
	kept *projections

	kernel    *actors.Kernel
	journal   *journal.Log
	state     *state
	snapshots *record.Snapshots
	beside    []func() // work that the last turns returned and that has not begun
	clients   []*client
	agents    []int64    // processes that clients have spawned
	told      []*request // recent commands with a key, to be sent again
	oracle    *oracle
	err       error // the first failure
}

// state is the state that the journal determines.
type state struct {
	domains   map[schema.Domain]kernel.Domain
	tokens    *capability.Registry
	procs     *process.Domain
	boxes     *ipc.Domain
	ledger    *resource.Ledger
	keys      *idempotency.Keys
	metrics   *metrics.Metrics
	budgets   *budget.Ledger
	approvals *approval.Domain
	tick      int64
	made      uint64 // the entry of all snapshots; 0 if they differ
}

type noNames struct{ kernel.Names }

func newState() (*state, error) {
	s := &state{keys: idempotency.New(), metrics: metrics.New(), budgets: budget.New(), procs: process.New(slices.Sorted(maps.Keys(pools)))}
	view := s.procs.Processes()
	s.tokens, s.boxes = capability.New(slices.Sorted(maps.Keys(pools)), view), ipc.New(ipc.Options{Capacity: boxCapacity, Processes: view})
	m, err := memory.New(schema.Value("{}"), view)
	if err != nil {
		return nil, err
	}
	if s.ledger, err = resource.New(pools, s.tokens, view); err != nil {
		return nil, err
	}
	s.approvals = approval.New(view)
	s.domains = map[schema.Domain]kernel.Domain{
		schema.Kernel: self.New(noNames{}), schema.Process: s.procs, schema.Capability: s.tokens, schema.Memory: m,
		schema.Resource: s.ledger, schema.Ipc: s.boxes, schema.Approval: s.approvals,
		schema.Http: http.New(func(*kernel.Call, *schema.HTTPFetchInput) *fault.Fault { return nil }),
	}
	return s, nil
}

// run runs a scenario, and returns a hash of its events.
func run(s scenario, log io.Writer) (trace string, step int, err error) {
	w := &world{r: rand.New(rand.NewPCG(s.seed, 12)), scenario: s, log: log, trace: sha256.New(), effects: newEffects()}
	w.disk, w.store, w.blobs = faultfs.NewDisk(), newProjections(), &shelf{blobs: make(map[string][]byte)}
	w.oracle, w.reserve = newOracle(w.effects), int64(w.r.IntN(2)*512)
	w.boot()
	for w.err == nil && w.step < s.steps {
		w.step++
		w.next()
		w.check()
	}
	if w.err == nil {
		w.settle()
	}
	if w.err == nil {
		w.fail(w.verify())
	}
	if w.kernel != nil {
		w.shut()
	}
	time.Sleep(time.Minute) // the actor library counts dead letters on a goroutine for a second
	return fmt.Sprintf("%x", w.trace.Sum(nil)), w.step, w.err
}

// note appends a line to the trace.
func (w *world) note(format string, args ...any) {
	if w.dead {
		return
	}
	line := fmt.Sprintf("%d %d ", w.step, time.Now().UnixMilli()) + fmt.Sprintf(format, args...) + "\n"
	_, _ = io.WriteString(w.trace, line)
	if w.log != nil {
		_, _ = io.WriteString(w.log, line)
	}
}

func (w *world) fail(err error) {
	if err != nil && w.err == nil && !w.dead {
		w.err = err
		w.note("FAIL %v", err)
	}
}

// logger returns the kernel's logger. Its output is not part of the trace.
func (w *world) logger() *slog.Logger {
	if w.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w.log, nil))
}

// drive runs turns of the kernel until call returns.
func (w *world) drive(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	for range 10_000 {
		synctest.Wait()
		select {
		case <-done:
			return
		default:
		}
		if !w.turn() && len(w.beside) == 0 {
			time.Sleep(time.Millisecond)
		}
		w.runAll()
	}
	w.fail(errors.New("the kernel does not come to an end"))
	panic(fmt.Sprintf("seed %d, step %d: %v", w.seed, w.step, w.err)) // its goroutines cannot be ended
}

// turn runs a turn. If the turn waits for a sync, as when the journal begins a segment or truncates a file, turn completes one.
func (w *world) turn() (more bool) {
	done := make(chan struct{})
	var beside []func()
	go func() {
		defer close(done)
		beside, more = w.kernel.Turn()
	}()
	for {
		synctest.Wait()
		select {
		case <-done:
			w.beside = append(w.beside, beside...)
			return more
		default:
		}
		if len(w.gate.Held()) == 0 {
			w.fail(errors.New("a turn waits for what is no sync"))
			<-done
		}
		w.gate.Complete(w.r.IntN(len(w.gate.Held())))
	}
}

func (w *world) runAll() {
	for len(w.beside) > 0 {
		w.begin(0)
	}
}

// begin begins the work with index i in beside.
func (w *world) begin(i int) {
	work := w.beside[i]
	w.beside = slices.Delete(w.beside, i, i+1)
	go work()
	synctest.Wait()
	if w.kernel != nil && !w.dead {
		w.listen()
	}
}

// shut ends the clients and the kernel, even after a failure.
func (w *world) shut() {
	w.fault(faultfs.Fault{})
	w.gate.Open()
	for _, c := range w.clients {
		c.link.reset()
	}
	for _, c := range w.clients {
		w.drive(func() { <-c.done })
	}
	w.unsure(w.clients...)
	w.clients = nil
	if w.kernel != nil {
		w.drive(func() { _ = w.kernel.Close() })
		w.runAll()
	}
	if w.journal != nil {
		_ = w.journal.Close()
	}
	w.kernel, w.journal = nil, nil
}

// crash cuts the power between two steps, and starts a kernel on the disk that is left.
func (w *world) crash() {
	w.cut.how = faultfs.Outcome(w.r.IntN(faultfs.Outcomes))
	w.blackout("between steps")
	w.rise()
}

// connect connects a client of a process.
func (w *world) connect(pid int64) {
	w.conns++
	c := &client{number: w.conns, pid: pid, done: make(chan struct{})}
	limit := schema.MaxLine
	if w.r.IntN(4) == 0 {
		limit = longLink
	}
	c.link = newLink(limit, func(most int) int { return 1 + w.r.IntN(most) })
	w.clients = append(w.clients, c)
	w.note("connect %d as %d", c.number, c.pid)
	w.kernel.Serve(c.link, kernel.Caller{PID: c.pid, Conn: c.name()}, func() { close(c.done) })
	synctest.Wait()
}

// next takes a step that the seed draws.
func (w *world) next() {
	if len(w.clients) == 0 {
		w.connect(w.caller())
		return
	}
	if w.r.IntN(8) == 0 {
		w.nextOutside()
		synctest.Wait()
		return
	}
	c := w.clients[w.r.IntN(len(w.clients))]
	switch n := w.r.IntN(1000); {
	case n < 200:
		w.sendSome(c)
	case n < 350:
		if most := len(c.link.flying); most > 0 {
			c.link.arrive(1 + w.r.IntN(most))
		}
	case n < 450:
		if most := c.link.unread; most > 0 {
			c.link.read(1 + w.r.IntN(most))
		}
	case n < 750:
		w.note("turn, more: %v", w.turn())
	case n < 850:
		if len(w.beside) > 0 {
			w.begin(w.r.IntN(len(w.beside)))
		}
	case n < 950:
		if held := w.gate.Held(); len(held) > 0 {
			i := w.r.IntN(len(held))
			w.note("sync of %s", held[i].Path)
			w.gate.Complete(i)
		}
	case n < 956:
		if w.drops("sleep") {
			return
		}
		time.Sleep(time.Duration(w.r.IntN(int(time.Second))))
	case n < 968:
		if w.drops("connect") {
			return
		}
		if len(w.clients) < w.scenario.clients {
			w.connect(w.caller())
		}
	case n < 971:
		if w.drops("reset") {
			return
		}
		w.note("reset %d", c.number)
		c.link.reset()
		w.leave(c)
	case n < 975:
		if w.drops("half-close") {
			return
		}
		w.note("half-close %d", c.number)
		c.link.end()
		w.settle()
		w.leave(c)
	case n < 980:
		if w.drops("settle") {
			return
		}
		w.settle()
	case n < 993:
		if w.drops("fault") {
			return
		}
		w.arm()
	default:
		if w.drops("crash") {
			return
		}
		w.crash()
	}
	synctest.Wait()
}

func (w *world) sendSome(c *client) {
	many := 1 + w.r.IntN(1+w.r.IntN(12))
	if w.r.IntN(40) == 0 && !w.drops("flood") {
		many = 150 // exceeds the window of a connection
	}
	about, only := mood(w.r.IntN(int(moods))), w.r.IntN(8*len(errands))
	for range many {
		q := w.compose(c, about, only)
		if len(w.told) > 0 && w.r.IntN(8) == 0 && !w.drops("again") {
			if old := pick(w, w.told); old.pid == c.pid && len(old.frame) < c.link.limit {
				q = w.again(c, old)
			}
		}
		w.note("client %d sends %s %s %s", c.number, q.id, q.typ, q.key)
		c.send(q)
	}
}

// leave waits until the kernel has released a client that ends. The other clients of the same agent end with it.
func (w *world) leave(c *client) {
	if w.err != nil {
		return
	}
	left := func(o *client) bool { return o == c || c.pid != kernel.Operator && o.pid == c.pid }
	var gone []*client
	for _, o := range w.clients {
		if left(o) {
			gone = append(gone, o)
		}
		if left(o) && o != c {
			o.link.reset() // the requests of c may wait for those that the agent's other clients have in flight
		}
	}
	w.open()
	for _, o := range gone {
		w.drive(func() { <-o.done })
	}
	w.gate.Shut()
	w.check()
	w.unsure(gone...)
	w.clients = slices.DeleteFunc(w.clients, left)
}

func (w *world) arm() {
	f := faultfs.Fault{N: 1 + w.r.IntN(20), Err: syscall.EIO, Short: w.r.IntN(2) == 0, Lies: w.r.IntN(4) == 0}
	if w.r.IntN(2) == 0 {
		f.Err = syscall.ENOSPC
	}
	w.note("fault at %d: %v", f.N, f.Err)
	w.fault(f)
}

// fault arms a fault of the disk; the zero fault is none.
func (w *world) fault(f faultfs.Fault) {
	hit := w.files.Hit()
	w.ends = w.ends || hit == "sync" || hit == "syncdir"
	w.oracle.faulted = w.oracle.faulted || hit != ""
	w.files.Arm(f)
}

// alive reports whether the kernel has not begun to end.
func (w *world) alive() bool {
	select {
	case <-w.kernel.Stopping():
		return false
	default:
		return true
	}
}

// check runs the oracle after a step. It restarts a kernel that has ended after a failed sync.
func (w *world) check() {
	if w.dead {
		w.rise()
		return
	}
	if w.kernel == nil || w.err != nil {
		return
	}
	synctest.Wait()
	w.listen()
	w.fail(w.bounded())
	if w.err == nil && !w.alive() {
		hit := w.files.Hit()
		if w.fault(faultfs.Fault{}); !w.ends {
			w.fail(fmt.Errorf("the kernel ends, and no sync has failed; the failed operation is %q", hit))
			return
		}
		if w.r.IntN(2) == 0 {
			w.crash()
		} else {
			w.stop()
		}
	}
}

// listen passes new entries, effects and answers to the oracle.
func (w *world) listen() {
	w.oracle.faulted = w.oracle.faulted || w.files.Hit() != ""
	w.fail(w.oracle.read(w.disk, w.journal.Written()))
	w.fail(w.effects.judge(w.oracle, w.disk))
	for _, c := range w.clients {
		w.hear(c)
	}
}

func (w *world) hear(c *client) {
	answered, err := c.hear()
	w.fail(err)
	for _, m := range c.events {
		w.note("client %d: %s", c.number, m.Type) // the data of audit events has random ids
		if w.err == nil {
			w.fail(w.oracle.event(c.name(), m, w.disk))
		}
	}
	c.events = nil
	for _, q := range answered {
		q.data = w.whole(q)
		w.note("client %d: %s %s", c.number, q.id, q.data)
		if w.err == nil {
			w.fail(w.oracle.told(q, w.disk))
		}
		if out := (schema.SpawnOutput{}); q.typ == "Syscall.Spawn" && q.kind == schema.KindReply && json.Unmarshal([]byte(q.data), &out) == nil {
			w.agents = append(w.agents, out.ChildPID)
		}
		if q.key != "" && (q.kind == schema.KindReply || q.typ == "Http.Fetch") {
			w.told = append(w.told, q)
		}
	}
}
