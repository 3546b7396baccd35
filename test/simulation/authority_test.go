package simulation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/test/authority/model"
)

// realm is the authority that the journal records: the model after the last entry, and the expected events.
type realm struct {
	*model.Model
	sent      map[string]*request       // all requests, by id
	begun     map[string]*model.Verdict // verdicts of calls whose first step is in the journal, by id
	endowed   map[int64]bool            // PIDs that have a token but do not exist yet
	ruled     uint64                    // the last entry that changed authority
	booked    uint64                    // the last entry that changed allocations
	mail      map[follower]*pushed      // the messages that are delivered to subscribers
	watches   map[string]*watch         // subscriptions to the audit log, by connection
	questions map[string]*question      // approval questions, by id
	paused    map[int64]bool            // paused processes
	exited    map[int64]bool            // ended processes
	faulted   bool                      // an operation of the disk has failed in this life of the kernel
	rereads   bool                      // the entries are read again, by restart
}

// follower is a subscription of a connection to a mailbox.
type follower struct {
	conn string
	pid  int64 // owner of the mailbox
}

// pushed are the messages that the journal delivers to a follower.
type pushed struct {
	list  []push
	heard int  // number of messages that the client has received
	ended bool // the last delivery was refused
}

type push struct {
	seq  uint64
	data string
}

// watch is a subscription to the audit log.
type watch struct {
	pid    int64
	next   uint64 // the next entry that may have to be pushed
	barred bool   // it lost the right to subscribe at some entry
	over   bool
}

func (r *realm) reset() {
	units := make(map[string]model.Tenths)
	for name, amount := range pools {
		units[name] = model.InTenths(amount)
	}
	r.Model = model.New(units, boxCapacity)
	r.begun, r.mail, r.watches = make(map[string]*model.Verdict), make(map[follower]*pushed), make(map[string]*watch)
	r.questions, r.paused = make(map[string]*question), make(map[int64]bool)
	r.exited = make(map[int64]bool)
	r.endowed, r.ruled, r.booked = make(map[int64]bool), 0, 0
}

// boxOf returns the mailbox of a process, or an empty one if it has none.
func (r *realm) boxOf(pid int64) *model.Box {
	if b := r.BoxOf(pid); b != nil {
		return b
	}
	return new(model.Box)
}

func (r *realm) asks(q *request) *model.Verdict {
	v := r.Judge(&model.Call{
		From: q.pid, Conn: q.conn, Type: q.typ, Meta: schema.Metadata{ID: q.id, IdempotencyKey: q.key}, Input: q.input,
	})
	if forbidden(q, v.Who, r.Tick) {
		v.Barred = append(v.Barred, 403)
	}
	return v
}

// judge computes the verdict for an entry of a client's call, and applies an entry of an internal step to the model. The verdict of a call
// with steps is computed at its first step.
func (o *oracle) judge(e *entry, record *journal.Record, m *schema.Message) error {
	q := o.sent[m.Meta.ID]
	if o.faulted || o.rereads { // the entry that advanced the clock may be lost
		before := record.Tick
		if q != nil && e.outcome.Err == nil {
			if in, ok := q.input.(*schema.ClockAdvanceInput); ok {
				before -= in.Ticks
			}
		}
		o.moves(e, before)
	}
	tick := o.Tick
	if q == nil {
		return o.step(e, record, m)
	}
	v := o.begun[q.id]
	if v == nil {
		if v = o.asks(q); o.Tick > tick {
			o.ruled = e.seq
		}
		if record.Tick != o.Tick && q.typ != "Clock.Advance" && !lost(e) {
			return fmt.Errorf("made at tick %d, want %d", record.Tick, o.Tick)
		}
	}
	delete(o.begun, q.id)
	e.verdict = v
	if record.PID != v.Who {
		return fmt.Errorf("made as %d, want %d", record.PID, v.Who)
	}
	if len(v.Barred) == 0 {
		return nil
	}
	o.sees(e, q)
	return o.fits(e, v)
}

// moves records that an entry advanced the clock to tick.
func (o *oracle) moves(e *entry, tick int64) {
	if tick > o.Tick {
		o.Tick, o.ruled = tick, e.seq
	}
}

// sees records which entries the answer to a query reveals by its success or its failure.
func (o *oracle) sees(e *entry, q *request) {
	switch {
	case q.command:
		return
	case q.typ == "Capability.Check", q.typ == "Syscall.Query":
		e.needs = max(o.ruled, o.booked)
	case len(e.verdict.Barred) > 0:
		e.needs = o.ruled
	}
	if q.pid != model.Operator || e.verdict.Who != model.Operator {
		e.needs = max(e.needs, o.ruled)
	}
}

// lost reports whether a call was not made: the journal could not be written, or the client of a receive had gone.
func lost(e *entry) bool { return e.outcome.Err != nil && e.outcome.Err.Code() == 503 }

// fits checks an outcome against the verdict.
func (o *oracle) fits(e *entry, v *model.Verdict) error {
	err := e.outcome.Err
	if lost(e) {
		return nil
	}
	switch wrong := slices.Concat(v.Barred, v.Refused); {
	case len(v.Barred) > 0 && (err == nil || !slices.Contains(v.Barred, err.Code())):
		return fmt.Errorf("want error %v: it may not be made", v.Barred)
	case len(wrong) > 0 && (err == nil || !slices.Contains(wrong, err.Code())):
		return fmt.Errorf("want error %v", wrong)
	case len(wrong) == 0 && err != nil:
		return errors.New("want it to succeed")
	}
	return nil
}

// comply checks the outcome of a client's call against its verdict, and applies the call to the model. What the steps of a call do
// is not applied here.
func (o *oracle) comply(e *entry, m *schema.Message) error {
	q, v := o.sent[m.Meta.ID], e.verdict
	if in, ok := q.input.(*schema.RevokeInput); ok && o.endowed[in.PID] && v.Who == model.Operator { // of an incomplete spawn
		v.Refused, v.Want = nil, fmt.Sprintf(`{"pid":%d,"revoked":true}`, in.PID)
		v.Apply = func() { delete(o.endowed, in.PID) }
	}
	if _, ok := q.input.(*schema.RevokeExpiredInput); ok && len(o.endowed) > 0 { // these may have expired
		v.Want, v.Open = "", true
	}
	o.sees(e, q)
	switch in := q.input.(type) {
	case *schema.ApprovalDecideInput:
		return o.decides(e, in)
	case *schema.PauseInput:
		if in.TargetPID != nil {
			return o.halts(e, *in.TargetPID, q.typ == "Process.Pause")
		}
	}
	if e.outcome.Err != nil && e.outcome.Err.ID == fault.IdempotencyUnderWay && q.key != "" && !o.keys[q.key].final() {
		return nil // the first call under this key is in flight
	}
	if e.outcome.Err != nil && strings.HasPrefix(q.typ, "Memory.") {
		return nil // apply has checked it
	}
	if err := o.fits(e, v); err != nil || e.outcome.Err != nil || !q.command {
		return err
	}
	if got := string(e.outcome.Data); !strings.HasPrefix(got, v.Want) || !v.Open && len(got) != len(v.Want) {
		return fmt.Errorf("want %s", v.Want)
	}
	switch in := q.input.(type) {
	case *schema.TerminateInput: // its steps are applied by step
	case *schema.SpawnInput:
		v.Apply()
		if child := int64(len(o.Procs)); !o.endowed[child] {
			o.Strip(child)
		} else {
			delete(o.endowed, child)
		}
	case *schema.AuditSubscribeInput:
		o.watches[q.conn] = &watch{pid: v.Who, next: e.seq + 1}
		if in.SinceSeq != nil {
			o.watches[q.conn].next = uint64(max(1, *in.SinceSeq))
		}
	case *schema.MailSubscribeInput:
		v.Apply()
		o.mail[follower{q.conn, v.Who}] = new(pushed)
	case *schema.ClockAdvanceInput:
		o.moves(e, o.Tick+in.Ticks)
	default:
		v.Apply()
	}
	switch {
	case strings.HasPrefix(q.typ, "Capability."), q.typ == "Syscall.Spawn":
		o.ruled = e.seq
	case q.typ == "Syscall.Alloc", q.typ == "Syscall.Release":
		o.booked = e.seq
	}
	return nil
}

// step checks an internal step, and applies it to the model.
func (o *oracle) step(e *entry, record *journal.Record, m *schema.Message) error {
	row, ok := schema.Lookup(m.Type)
	if !ok || e.outcome.Err != nil && m.Type != "Ipc.Deliver" {
		return nil
	}
	input, err := decoded(row, string(m.Data))
	if err != nil {
		return err
	}
	if q := o.sent[m.Meta.Causation]; q != nil && slices.Contains([]string{"Process.Prepare", "Process.Exit", "Ipc.Address"}, m.Type) {
		v := o.begun[q.id]
		if v == nil {
			v = o.asks(q)
			o.begun[q.id] = v
		}
		if len(v.Barred)+len(v.Refused) > 0 {
			return fmt.Errorf("a step of %s: want error %v", strings.TrimSpace(q.frame), slices.Concat(v.Barred, v.Refused))
		}
	}
	switch in := input.(type) {
	case *schema.ApprovalRequestedInput, *schema.ApprovalUseInput:
		return o.asked(m, in)
	case *schema.ProcessExitInput:
		o.Exit(in.PIDs...)
		for _, pid := range in.PIDs {
			o.exited[pid] = true
		}
		maps.DeleteFunc(o.paused, func(pid int64, _ bool) bool { return slices.Contains(in.PIDs, pid) })
		o.ruled = e.seq
	case *schema.EndowInput:
		o.endowed[in.PID] = true
		if v := o.begun[m.Meta.Causation]; v != nil && *in.GrantedBy != v.Who {
			return fmt.Errorf("granted by %d, want %d", *in.GrantedBy, v.Who)
		}
	case *schema.StripInput:
		o.Strip(in.PIDs...)
		maps.DeleteFunc(o.endowed, func(pid int64, _ bool) bool { return slices.Contains(in.PIDs, pid) })
		o.ruled = e.seq
		return o.gone(in.PIDs)
	case *schema.ResourceFreeInput:
		o.Free(in.PIDs...)
		o.booked = e.seq
		return o.gone(in.PIDs)
	case *schema.MailboxInput:
		if m.Type == "Ipc.Close" {
			o.Close(in.PIDs...)
			return o.gone(in.PIDs)
		}
	case *schema.MailReturnInput:
		o.Return(in.Conn, in.PIDs...)
	case *schema.MailDeliverInput:
		return o.deliver(e, record, in)
	}
	return nil
}

// gone checks that a cleanup step affects only processes that have ended.
func (o *oracle) gone(pids []int64) error {
	for _, pid := range pids {
		if p := o.Proc(pid); p != nil && p.Exit == nil {
			return fmt.Errorf("pid %d is alive", pid)
		}
	}
	return nil
}

// deliver checks a delivery to a subscription of a mailbox.
func (o *oracle) deliver(e *entry, record *journal.Record, in *schema.MailDeliverInput) error {
	v := o.Deliver(record.PID, record.Conn, in)
	p := o.mail[follower{record.Conn, record.PID}]
	if p == nil {
		return errors.New("nobody has subscribed there")
	}
	if p.ended = e.outcome.Err != nil; p.ended {
		return o.fits(e, v)
	}
	if follower := o.boxOf(record.PID).Follower; follower != record.Conn {
		return fmt.Errorf("the mailbox is followed on %q", follower)
	}
	if err := o.fits(e, v); err != nil {
		return err
	}
	if string(e.outcome.Data) != v.Want {
		return fmt.Errorf("want %s", v.Want)
	}
	v.Apply()
	var out struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(e.outcome.Data, &out); err != nil {
		return err
	}
	for _, one := range out.Messages {
		p.list = append(p.list, push{e.seq, string(one)})
	}
	return nil
}

// event checks an event that a connection has received.
func (o *oracle) event(conn string, m *schema.Message, disk *faultfs.Disk) error {
	switch m.Type {
	case "Ipc.MessageDelivered":
		var mail struct {
			PID int64 `json:"receiver_pid"`
		}
		if err := json.Unmarshal(m.Data, &mail); err != nil {
			return err
		}
		p := o.mail[follower{conn, mail.PID}]
		if p == nil || p.heard == len(p.list) || p.list[p.heard].data != string(m.Data) {
			return fmt.Errorf("%s is pushed %s, which is not what the journal delivers next", conn, m.Data)
		}
		p.heard++
		if err := o.revealed(p.list[p.heard-1].seq, disk); err != nil {
			return fmt.Errorf("%s is pushed %s, which %w", conn, m.Data, err)
		}
	case "Audit.Recorded":
		return o.recorded(conn, m, disk)
	case "Ipc.Unsubscribed":
		for key, p := range o.mail {
			if key.conn == conn && p.ended {
				return nil
			}
		}
		if !o.faulted {
			return fmt.Errorf("the subscription of %s has ended: %s", conn, m.Data)
		}
	case "Audit.Unsubscribed":
		w := o.watches[conn]
		if w.over = true; !w.barred && !o.faulted {
			return fmt.Errorf("the subscription of %s has ended: %s", conn, m.Data)
		}
	}
	return nil
}

// recorded checks that the audit log is pushed in order, without gaps or repetitions.
func (o *oracle) recorded(conn string, m *schema.Message, disk *faultfs.Disk) error {
	var row struct {
		Seq     uint64
		Type    string
		PID     int64
		Success bool
	}
	if err := json.Unmarshal(m.Data, &row); err != nil {
		return err
	}
	w := o.watches[conn]
	next := o.shows(w)
	if w == nil || next == nil || row.Seq != next.seq {
		return fmt.Errorf("%s is pushed entry %s, want %+v", conn, m.Data, next)
	}
	if row.Type != next.typ || row.PID != next.pid || row.Success != (next.outcome.Err == nil) {
		return fmt.Errorf("%s is pushed %s, which differs from the journal", conn, m.Data)
	}
	w.next = row.Seq + 1
	if err := o.revealed(row.Seq, disk); err != nil {
		return fmt.Errorf("%s is pushed %s, which %w", conn, m.Data, err)
	}
	return nil
}

// shows returns the next entry that a subscription to the audit log must receive; nil if there is none yet.
func (o *oracle) shows(w *watch) *entry {
	for ; w != nil && w.next <= uint64(len(o.entries)); w.next++ {
		e := &o.entries[w.next-1]
		if e.hidden {
			continue
		}
		if w.pid == model.Operator || e.pid == w.pid || o.Below(e.pid, w.pid) {
			return e
		}
	}
	return nil
}

// watched marks the subscriptions to the audit log that are no longer allowed.
func (o *oracle) watched() {
	for _, w := range o.watches {
		w.barred = w.barred || len(o.Bar(w.pid, "Audit.Subscribe")) > 0
	}
}

// quiescent checks, when nothing is in flight, that every event was pushed.
func (o *oracle) quiescent(clients []*client) error {
	for _, c := range clients {
		if c.link.ended { // an ended connection receives no more
			continue
		}
		for key, p := range o.mail {
			if key.conn == c.name() && p.heard < len(p.list) {
				return fmt.Errorf("client %d was not pushed %s", c.number, p.list[p.heard].data)
			}
		}
		if w := o.watches[c.name()]; w != nil && !w.over && !w.barred {
			if e := o.shows(w); e != nil {
				return fmt.Errorf("client %d was not pushed entry %d", c.number, e.seq)
			}
		}
	}
	if o.faulted { // after a fault, a mailbox may not be served before the next entry
		return nil
	}
	live := map[string]bool{"": true}
	for _, c := range clients {
		live[c.name()] = true
	}
	for pid := range int64(len(o.Procs) + 1) {
		b := o.boxOf(pid)
		if !live[b.Follower] || slices.ContainsFunc(b.Letters, func(l *model.Letter) bool { return !live[l.Conn] }) {
			return fmt.Errorf("mailbox of %d: a connection that has ended still follows it, or has messages of it in flight", pid)
		}
		if b.Follower != "" && len(o.Readable(b, nil)) > 0 {
			return fmt.Errorf("mailbox of %d: %s, which follows it, was not pushed all messages", pid, b.Follower)
		}
	}
	return nil
}

// overslept checks, while the kernel is idle, that no receive waits although matching mail is in the mailbox.
func (o *oracle) overslept(clients []*client) error {
	calling := make(map[int64]int)
	for _, c := range clients {
		if len(c.pending) > 0 {
			calling[c.pid]++
		}
	}
	for _, c := range clients {
		if len(c.pending) == 0 || o.paused[c.pid] || o.faulted || c.pid != model.Operator && calling[c.pid] > 1 { // it may be unread
			continue
		}
		in, ok := c.pending[0].input.(*schema.ReceiveInput)
		if !ok || o.byID[c.pending[0].id] != nil {
			continue
		}
		who := c.pid
		if in.PID != nil && who == model.Operator {
			who = *in.PID
		}
		if len(o.Readable(o.boxOf(who), in.Intent)) > 0 {
			return fmt.Errorf("client %d waits with %s although matching mail is in the mailbox", c.number, c.waits())
		}
	}
	return nil
}
