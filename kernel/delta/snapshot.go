package delta

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/promptware-os/pwos/kernel"
)

// A snapshot is a row of records, cut into chunks between records. A record begins with its tag: the number of
// checkpoints ever made, if there were any; then for each memory, by ascending address, its address and the number of
// deltas ever committed, followed by a record for each delta in force: tick and body. Numbers are unsigned varints, a
// text is its length followed by its bytes. The same state gives the same bytes.
const (
	tagCheckpoints = 'c'
	tagLedger      = 'l'
	tagDelta       = 'd'
)

// ErrSnapshot is returned by Restore for a chunk that no Snapshot wrote.
var ErrSnapshot = errors.New("malformed snapshot of agent memory")

// Snapshot takes the present state, in constant time: see kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	ledgers, checkpoints := d.ledgers.Copy(), d.checkpoints
	return func(write func(chunk []byte) error) error {
		w := &kernel.ChunkWriter{Write: write}
		if checkpoints > 0 {
			w.Chunk = binary.AppendUvarint(append(w.Chunk, tagCheckpoints), uint64(checkpoints))
		}
		ledgers.Scan(func(at string, l ledger) bool {
			w.Chunk = kernel.AppendText(append(w.Chunk, tagLedger), at)
			w.Chunk = binary.AppendUvarint(w.Chunk, uint64(l.last))
			for _, d := range l.log {
				if !w.Cut() {
					return false
				}
				w.Chunk = binary.AppendUvarint(append(w.Chunk, tagDelta), uint64(d.tick))
				w.Chunk = kernel.AppendText(w.Chunk, d.body)
			}
			return true
		})
		return w.Flush()
	}
}

// Restore adds a chunk: see kernel.Domain. It refuses one that does not continue what it was given before.
func (d *Domain) Restore(chunk []byte) error {
	r := newReader(chunk)
	for len(r.Rest) > 0 && !r.Bad {
		switch r.tag() {
		case tagCheckpoints:
			r.Bad = r.Bad || d.checkpoints > 0 || d.ledgers.Len() > 0
			d.checkpoints = r.positive()
			r.Bad = r.Bad || d.checkpoints == 0
		case tagLedger:
			d.restoreLedger(r)
		case tagDelta:
			d.restoreDelta(r)
		default:
			r.Bad = true
		}
	}
	if r.Bad {
		return ErrSnapshot
	}
	return nil
}

// restoreLedger begins a memory, which must come after all earlier ones: a delta belongs to the
// latest.
func (d *Domain) restoreLedger(r *reader) {
	at := r.Text()
	last := r.positive()
	origin := newReader([]byte(at))
	origin.Bytes()
	greatest, _, some := d.ledgers.Max()
	if r.Bad = r.Bad || origin.Bad || last == 0 || some && at <= greatest; !r.Bad {
		d.ledgers.Load(at, ledger{last: last})
	}
}

// restoreDelta adds a delta to the last memory, if it could have been committed there.
func (d *Domain) restoreDelta(r *reader) {
	tick, body := r.positive(), r.Bytes()
	at, l, ok := d.ledgers.Max()
	if r.Bad = r.Bad || !ok || int64(len(l.log)) >= l.last || !wellFormed(body); r.Bad {
		return
	}
	if n := len(l.log); n > 0 && tick < l.log[n-1].tick {
		r.Bad = true
		return
	}
	l.log = append(l.log, delta{tick, string(body)})
	d.ledgers.Set(at, l)
	d.count(at, string(body))
}

// positive reads a number that an int64 holds.
func (r *reader) positive() int64 {
	n := r.Unsigned()
	if r.Bad = r.Bad || n > math.MaxInt64; r.Bad {
		return 0
	}
	return int64(n)
}
