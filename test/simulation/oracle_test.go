package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/test/authority/model"
)

// oracle knows what the journal says, and with a model of memory of its own, what clients may have been told on the strength of it.
type oracle struct {
	realm
	entries []entry           // by seq-1
	byID    map[string]*entry // of the message
	memory  map[string]string // key to value, after the last entry
	changed map[string]uint64 // key to the entry that changed it last
	sets    map[string]uint64 // value to the entry that set it
	keys    map[string]*entry // idempotency key to the first entry that succeeded under it
	last    map[string]int    // connection to the number of its last message
	durable uint64            // entries that a power cut leaves, as far as anybody has looked
	acked   uint64            // the last entry that anybody was told of

	effects *effects          // that were begun, in all lives
	open    map[uint64]*entry // intents that have no end
	fetches map[string]*entry // idempotency key to the last intent under it
}

// entry is an entry of the journal.
type entry struct {
	seq     uint64
	time    int64 // Unix milliseconds
	hash    journal.Hash
	outcome schema.Outcome
	needs   uint64 // its answer reveals what this entry says
	want    string // value that its answer has, where it is a Memory.Get
	typ     string
	pid     int64          // that it was made as
	verdict *model.Verdict // of a client's call

	id   string // of an intent: that of its message
	end  *entry // of an intent: its outcome
	free bool   // of an intent: it was never begun

	hidden bool // an intent: an effect is shown in the audit log with its end
}

func newOracle(x *effects) *oracle {
	o := &oracle{effects: x}
	o.sent = make(map[string]*request)
	return o.reset()
}

// reset forgets what the journal says, for it to be read again.
func (o *oracle) reset() *oracle {
	o.entries, o.byID, o.keys = nil, make(map[string]*entry), make(map[string]*entry)
	o.last = make(map[string]int)
	o.open, o.fetches = make(map[uint64]*entry), make(map[string]*entry)
	o.realm.reset()
	o.memory, o.changed, o.sets = make(map[string]string), make(map[string]uint64), make(map[string]uint64)
	return o
}

// read takes in what was written to the journal since, up to the entry limit.
func (o *oracle) read(disk journal.FS, limit uint64) error {
	if uint64(len(o.entries)) == limit {
		return nil
	}
	r := journal.NewReader(disk, journalDir, journal.ReaderOptions{
		From: uint64(len(o.entries)) + 1, Limit: func() uint64 { return limit },
	})
	defer func() { _ = r.Close() }()
	for {
		record, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) && uint64(len(o.entries)) == limit {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read entry %d of %d: %w", len(o.entries)+1, limit, err)
		}
		if err := o.take(record); err != nil {
			return fmt.Errorf("entry %d: %s: %s: %w", record.Seq, record.Request, record.Outcome, err)
		}
		o.watched()
	}
}

// take runs an entry on the model.
func (o *oracle) take(record *journal.Record) error {
	e := &entry{seq: record.Seq, time: record.Time, hash: record.Hash, needs: record.Seq, pid: record.PID}
	if e.seq != uint64(len(o.entries))+1 {
		return fmt.Errorf("want entry %d", len(o.entries)+1)
	}
	m, invalid := schema.Decode(bytes.Clone(record.Request), schema.OsMessage)
	if invalid != nil {
		return invalid
	}
	if e.outcome, invalid = schema.DecodeOutcome(bytes.Clone(record.Outcome)); invalid != nil {
		return invalid
	}
	if _, ok := o.byID[m.Meta.ID]; ok {
		return errors.New("the message was carried out before")
	}
	var number int
	if _, err := fmt.Sscanf(m.Meta.ID, "m%d", &number); err == nil { // else it is the kernel's own
		if number < o.last[record.Conn] {
			return fmt.Errorf("carried out after m%d of the same connection", o.last[record.Conn])
		}
		o.last[record.Conn] = number
	}
	e.typ = m.Type
	o.entries = append(o.entries, *e)
	o.byID[m.Meta.ID] = e
	if err := o.judge(e, record, &m); err != nil {
		return err
	}
	switch m.Type {
	case "Http.Fetch":
		return o.fetched(e, &m)
	case "Http.Fetched":
		return o.ends(e, &m)
	}
	if e.verdict == nil || len(e.verdict.Barred) > 0 {
		return nil
	}
	q := o.sent[m.Meta.ID]
	if err := o.stands(e, q); err != nil {
		return err
	}
	if over, err := o.let(e, q, &m); over || err != nil {
		return err
	}
	if again, err := o.keyed(e, m.Meta.IdempotencyKey); again || err != nil {
		return err
	}
	if err := o.apply(e, &m); err != nil {
		return err
	}
	return o.comply(e, &m)
}

// keyed takes in an entry with an idempotency key, and reports whether it repeats one.
func (o *oracle) keyed(e *entry, key string) (again bool, err error) {
	first := o.keys[key]
	switch again = e.outcome.Repeats > 0; {
	case again && (first == nil || e.outcome.Repeats != first.seq || !sameOutcome(e, first)):
		return true, errors.New("repeats an outcome that its key does not have")
	case again, key == "":
	case first == nil || !first.final():
		o.keys[key] = e
	case e.final():
		return false, fmt.Errorf("was carried out before, as entry %d", first.seq)
	}
	return again, nil
}

// final reports whether an entry is the outcome of its idempotency key: a success, or a failure that is neither a refusal nor the
// kernel's own (PROTOCOL 7).
func (e *entry) final() bool {
	err := e.outcome.Err
	if err == nil {
		return true
	}
	switch err.Kind {
	case fault.Unauthenticated, fault.Forbidden, fault.QuotaExceeded, fault.Ended, fault.Pending:
		return false
	}
	return err.Code() < 500 && err.ID != fault.IdempotencyUnderWay && err.ID != fault.ClockAhead
}

func sameOutcome(a, b *entry) bool {
	if a.outcome.Err != nil && b.outcome.Err != nil {
		return a.outcome.Err.ID == b.outcome.Err.ID
	}
	return a.outcome.Err == b.outcome.Err && bytes.Equal(a.outcome.Data, b.outcome.Data)
}

// apply runs a syscall on the model of memory, and compares.
func (o *oracle) apply(e *entry, m *schema.Message) error {
	var in struct {
		Key   string
		Value json.RawMessage
	}
	if err := json.Unmarshal(m.Data, &in); err != nil {
		return err
	}
	_, there := o.memory[in.Key]
	want := true
	switch m.Type {
	case "Memory.Get":
		e.needs, e.want = o.changed[in.Key], o.memory[in.Key]
		want = there
	case "Memory.Delete":
		want = there
	case "Memory.CompareAndSet": // none names what it expects: nothing
		want = !there
	case "Memory.Set":
	case "Syscall.Ping":
		e.needs = 0
		return nil
	default:
		return nil
	}
	if e.outcome.Err != nil && e.outcome.Err.Code() == 503 {
		return nil // the journal could not be written
	}
	if ok := e.outcome.Err == nil; ok != want {
		return fmt.Errorf("succeeded: %v, want %v", ok, want)
	}
	if e.outcome.Err != nil || m.Type == "Memory.Get" {
		return nil
	}
	o.changed[in.Key] = e.seq
	if m.Type == "Memory.Delete" {
		delete(o.memory, in.Key)
	} else {
		o.memory[in.Key], o.sets[string(in.Value)] = string(in.Value), e.seq
	}
	return nil
}

// told checks an answer, as it is given.
func (o *oracle) told(q *request, disk *faultfs.Disk) error {
	e := o.outcomeOf(q, o.byID[q.id])
	if q.kind == schema.KindError && q.code() == "503" {
		return nil // the journal cannot be written, or it is unknown whether it was
	}
	if e == nil { // while the journal cannot be written: what was there before is told all the same
		if e = o.unrecorded(q); e == nil {
			return fmt.Errorf("%s %s was answered %s, and the journal has no such entry", q.typ, q.id, q.data)
		}
	}
	if (q.kind == schema.KindReply) != (e.outcome.Err == nil) {
		return fmt.Errorf("%s %s was answered %s; entry %d says otherwise", q.typ, q.id, q.data, e.seq)
	}
	switch {
	case q.kind == schema.KindError:
	case q.typ == "Memory.Get" && q.data != e.want:
		return fmt.Errorf("%s %s was answered %s, want %s as of entry %d", q.typ, q.id, q.data, e.want, e.seq)
	case !q.command && e.verdict != nil && !strings.HasPrefix(q.data, e.verdict.Want):
		return fmt.Errorf("%s %s was answered %s, want %s as of entry %d", q.typ, q.id, q.data, e.verdict.Want, e.seq)
	case q.command && q.data != string(e.outcome.Data):
		return fmt.Errorf("%s %s was answered %s, entry %d says %s", q.typ, q.id, q.data, e.seq, e.outcome.Data)
	}
	if err := o.revealed(e.needs, disk); err != nil {
		return fmt.Errorf("%s %s was answered %s, which %w", q.typ, q.id, q.data, err)
	}
	return nil
}

// revealed notes that somebody was told what an entry says.
func (o *oracle) revealed(seq uint64, disk *faultfs.Disk) error {
	o.acked = max(o.acked, seq)
	if seq <= o.durable {
		return nil
	}
	if o.look(disk); seq > o.durable {
		return fmt.Errorf("reveals entry %d; a power cut now leaves %d entries", seq, o.durable)
	}
	return nil
}

// unrecorded is what an answer without an entry may be made of; nil: it may not be.
func (o *oracle) unrecorded(q *request) *entry {
	switch {
	case q.kind == schema.KindError && (o.faulted || q.code() == "429" && q.pid != model.Operator):
		return &entry{outcome: schema.Outcome{Err: fault.JournalUnavailable.New("")}}
	case q.kind == schema.KindError && q.code() == "404" && strings.Contains(q.frame, nowhere):
		return &entry{outcome: schema.Outcome{Err: fault.BlobNotFound.New("")}} // before it is a call
	case !o.faulted:
	case q.typ == "Syscall.Ping", !q.command && q.typ != "Memory.Get":
		return new(entry)
	case q.typ == "Memory.Get":
		if set := o.sets[q.data]; set != 0 {
			return &entry{needs: set, want: q.data}
		}
	case q.key != "" && q.typ == "Http.Fetch":
		return o.outcomeOf(q, o.fetches[q.key])
	case q.key != "":
		return o.keys[q.key]
	}
	return nil
}

// look finds out what a power cut would leave.
func (o *oracle) look(disk *faultfs.Disk) {
	left := disk.Crash(rand.New(rand.NewPCG(0, 0)), faultfs.LoseAll)
	r := journal.NewReader(left, journalDir, journal.ReaderOptions{From: o.durable + 1})
	defer func() { _ = r.Close() }()
	for {
		record, err := r.Next(context.Background())
		if err != nil || record.Seq != o.durable+1 || record.Seq > uint64(len(o.entries)) || record.Hash != o.entries[o.durable].hash {
			return
		}
		o.durable++
	}
}

// restart reads the journal as a new life finds it: all that anybody was told has to be in it, unchanged.
func (o *oracle) restart(disk journal.FS, head uint64) error {
	before := slices.Clone(o.entries)
	o.rereads, o.faulted = true, false
	defer func() { o.rereads = false }()
	if err := o.reset().read(disk, head); err != nil {
		return err
	}
	if head < o.acked {
		return fmt.Errorf("the journal ends with entry %d; clients were told of entry %d", head, o.acked)
	}
	for i := range min(o.acked, uint64(len(before))) {
		if before[i].hash != o.entries[i].hash {
			return fmt.Errorf("entry %d has changed", i+1)
		}
	}
	o.durable = 0
	return nil
}
