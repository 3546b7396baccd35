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

// oracle has the content of the journal, and a model of memory that determines what clients may have been told.
type oracle struct {
	realm
	entries []entry           // the entry with number n at n-1
	byID    map[string]*entry // by the id of the message
	memory  map[string]string // value by key, after the last entry
	changed map[string]uint64 // the entry that last changed a key
	sets    map[string]uint64 // the entry that set a value
	keys    map[string]*entry // the first entry that determines the outcome of an idempotency key
	last    map[string]int    // the number of the last message of each connection
	durable uint64            // number of entries that survive a power cut, as of the last look
	acked   uint64            // the last entry whose content a client was told

	effects *effects          // the effects that have begun, across restarts
	open    map[uint64]*entry // intents without an end
	fetches map[string]*entry // the last intent under each idempotency key
}

// entry is an entry of the journal, with the oracle's conclusions.
type entry struct {
	seq     uint64
	time    int64 // Unix milliseconds
	hash    journal.Hash
	outcome schema.Outcome
	needs   uint64 // its answer reveals the content of this entry
	want    string // for Memory.Get: the value in its answer
	typ     string
	pid     int64          // the process that made it
	verdict *model.Verdict // for a client's call

	id   string // of an intent: the id of its message
	end  *entry // of an intent: the entry of its end
	free bool   // of an intent: the effect never began

	hidden bool // the audit log does not show it: an effect is shown at its end
}

func newOracle(x *effects) *oracle {
	o := &oracle{effects: x}
	o.sent = make(map[string]*request)
	return o.reset()
}

// reset drops the content of the journal, before it is read again.
func (o *oracle) reset() *oracle {
	o.entries, o.byID, o.keys = nil, make(map[string]*entry), make(map[string]*entry)
	o.last = make(map[string]int)
	o.open, o.fetches = make(map[uint64]*entry), make(map[string]*entry)
	o.realm.reset()
	o.memory, o.changed, o.sets = make(map[string]string), make(map[string]uint64), make(map[string]uint64)
	return o
}

// read processes the entries that were written since the last call, up to the entry limit.
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

// take checks an entry and applies it to the models.
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
	if _, err := fmt.Sscanf(m.Meta.ID, "m%d", &number); err == nil { // other ids are internal
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

// keyed checks an entry with an idempotency key. again reports whether the entry repeats an outcome.
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

// final reports whether an entry determines the outcome of its idempotency key: a success, or a failure that is neither a refusal nor
// internal (PROTOCOL 7).
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

// apply checks a syscall of memory against the model, and applies it.
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
	case "Memory.CompareAndSet": // without an expected value: the key must not exist
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

// told checks an answer.
func (o *oracle) told(q *request, disk *faultfs.Disk) error {
	e := o.outcomeOf(q, o.byID[q.id])
	if q.kind == schema.KindError && q.code() == "503" {
		return nil // the journal cannot be written, or the outcome of the write is unknown
	}
	if e == nil { // while the journal cannot be written, reads of older content are answered without an entry
		if e = o.unrecorded(q); e == nil {
			return fmt.Errorf("%s %s was answered %s, and the journal has no such entry", q.typ, q.id, q.data)
		}
	}
	if (q.kind == schema.KindReply) != (e.outcome.Err == nil) {
		return fmt.Errorf("%s %s was answered %s; entry %d differs", q.typ, q.id, q.data, e.seq)
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

// revealed records that a client was told the content of an entry. It returns an error if the entry is not durable.
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

// unrecorded returns the entry that an answer without an entry of its own may be based on; nil: the answer is not allowed.
func (o *oracle) unrecorded(q *request) *entry {
	switch {
	case q.kind == schema.KindError && (o.faulted || q.code() == "429" && q.pid != model.Operator):
		return &entry{outcome: schema.Outcome{Err: fault.JournalUnavailable.New("")}}
	case q.kind == schema.KindError && q.code() == "404" && strings.Contains(q.frame, nowhere):
		return &entry{outcome: schema.Outcome{Err: fault.BlobNotFound.New("")}} // refused before it is a call
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

// look updates durable: the number of entries that would survive a power cut now.
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

// restart reads the journal at a new start, and checks that it has every entry that a client was told of, unchanged.
func (o *oracle) restart(disk journal.FS, head uint64) error {
	before := slices.Clone(o.entries)
	o.rereads, o.faulted = true, false
	defer func() { o.rereads = false }()
	if err := o.reset().read(disk, head); err != nil {
		return err
	}
	if head < o.acked {
		return fmt.Errorf("the journal ends with entry %d; clients were told the content of entry %d", head, o.acked)
	}
	for i := range min(o.acked, uint64(len(before))) {
		if before[i].hash != o.entries[i].hash {
			return fmt.Errorf("entry %d has changed", i+1)
		}
	}
	o.durable = 0
	return nil
}
