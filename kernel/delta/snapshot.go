package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A snapshot is a row of records, cut into chunks between records. A record begins with its tag: the number of checkpoints
// ever made, where there were any; then for each memory, by ascending address, its address and the number of deltas ever
// committed, followed by a record for each delta in force: tick and body. Numbers are unsigned varints, a text is its
// length followed by its bytes. The same state gives the same bytes.
const (
	tagCheckpoints = 'c'
	tagLedger      = 'l'
	tagDelta       = 'd'
)

// ErrSnapshot is returned by Restore for a chunk that no Snapshot wrote.
var ErrSnapshot = errors.New("malformed snapshot of agent memory")

// chunkSize is the number of bytes from which on a chunk takes no further record.
const chunkSize = 1 << 20

// Snapshot takes the present state, in constant time: see kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	ledgers, checkpoints := d.ledgers.Copy(), d.checkpoints
	return func(write func(chunk []byte) error) error {
		w := &chunkWriter{write: write}
		if checkpoints > 0 {
			w.chunk = binary.AppendUvarint(append(w.chunk, tagCheckpoints), uint64(checkpoints))
		}
		ledgers.Scan(func(at string, l ledger) bool {
			w.ledger(at, l)
			return w.err == nil
		})
		if w.err == nil && len(w.chunk) > 0 {
			w.flush()
		}
		return w.err
	}
}

// chunkWriter cuts a state into chunks.
type chunkWriter struct {
	write func(chunk []byte) error
	chunk []byte
	err   error // of write; nothing is written after it
}

// ledger writes one memory. It may end in a later chunk than it began in.
func (w *chunkWriter) ledger(at string, l ledger) {
	w.chunk = appendText(append(w.chunk, tagLedger), at)
	w.chunk = binary.AppendUvarint(w.chunk, uint64(l.last))
	for _, d := range l.log {
		if len(w.chunk) >= chunkSize {
			w.flush()
		}
		if w.err != nil {
			return
		}
		w.chunk = binary.AppendUvarint(append(w.chunk, tagDelta), uint64(d.tick))
		w.chunk = appendText(w.chunk, d.body)
	}
}

// flush hands the chunk over for good: the writer may keep it.
func (w *chunkWriter) flush() {
	if err := w.write(w.chunk); err != nil {
		w.err = fmt.Errorf("write snapshot of agent memory: %w", err)
	}
	w.chunk = nil
}

// Restore adds a chunk: see kernel.Domain. It refuses one that does not continue what it was given before.
func (d *Domain) Restore(chunk []byte) error {
	r := &reader{rest: chunk}
	for len(r.rest) > 0 && !r.bad {
		switch r.tag() {
		case tagCheckpoints:
			r.bad = r.bad || d.checkpoints > 0 || d.ledgers.Len() > 0
			d.checkpoints = r.positive()
			r.bad = r.bad || d.checkpoints == 0
		case tagLedger:
			d.restoreLedger(r)
		case tagDelta:
			d.restoreDelta(r)
		default:
			r.bad = true
		}
	}
	if r.bad {
		return ErrSnapshot
	}
	return nil
}

// restoreLedger begins a memory, which must lie behind all there are: a delta belongs to the last one.
func (d *Domain) restoreLedger(r *reader) {
	at := string(r.text())
	last := r.positive()
	origin := &reader{rest: []byte(at)}
	origin.text()
	greatest, _, some := d.ledgers.Max()
	if r.bad = r.bad || origin.bad || last == 0 || some && at <= greatest; !r.bad {
		d.ledgers.Load(at, ledger{last: last})
	}
}

// restoreDelta adds a delta to the last memory, if it could have been committed there.
func (d *Domain) restoreDelta(r *reader) {
	tick, body := r.positive(), r.text()
	at, l, ok := d.ledgers.Max()
	if r.bad = r.bad || !ok || int64(len(l.log)) >= l.last || !wellFormed(body); r.bad {
		return
	}
	if n := len(l.log); n > 0 && tick < l.log[n-1].tick {
		r.bad = true
		return
	}
	l.log = append(l.log, delta{tick, string(body)})
	d.ledgers.Set(at, l)
	d.count(at, string(body))
}

// positive reads a number that an int64 holds.
func (r *reader) positive() int64 {
	n := r.number()
	if r.bad = r.bad || n > math.MaxInt64; r.bad {
		return 0
	}
	return int64(n)
}
