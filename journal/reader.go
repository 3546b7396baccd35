package journal

import (
	"context"
	"errors"
	"io"
	"time"
)

const defaultPoll = 100 * time.Millisecond

// ReaderOptions say what a Reader reads.
type ReaderOptions struct {
	// From is the first entry to return; 0 means the first there is.
	From uint64

	// Follow makes Next wait for more at the end, instead of returning io.EOF.
	Follow bool

	// Notify, where not nil, wakes a waiting Next; a capacity of one and a sender that does not block are enough.
	Notify <-chan struct{}

	// Poll is how often a waiting Next looks by itself; 0 means every 100 ms.
	Poll time.Duration

	// Limit, where not nil, is asked for the last entry that may be returned: (*Log).Synced keeps a reader from entries
	// that a crash could still undo, (*Log).Written from those of a write that fails half way. Without it a reader shows
	// whatever line is whole.
	Limit func() uint64
}

// A Reader walks the entries of a journal in order, while this or another process writes it, in memory that depends on
// the longest line only. It checks the chain as it goes: what it returned is what was appended, but for a change of the
// very last entry. It is for one goroutine.
type Reader struct {
	fsys FS
	dir  string
	opt  ReaderOptions

	f     File
	lines *lineReader
	first uint64 // of the open segment
	tail  bool   // whether it is known to have been the last one
	head  Head   // the last entry read; its hash is unknown before the first
	known bool   // whether it is known, which it is from the first on
	limit uint64 // what Limit said before the lines at hand were read
	rec   Record
}

// NewReader returns a Reader of the journal in dir; a nil fsys means OSFS. The directory need not exist yet.
func NewReader(fsys FS, dir string, o ReaderOptions) *Reader {
	if fsys == nil {
		fsys = OSFS{}
	}
	o.From = max(o.From, 1)
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	return &Reader{fsys: fsys, dir: dir, opt: o}
}

// Next returns the next entry, valid until the call after. It returns io.EOF at the end of the journal, or of what Limit
// allows, unless it follows; a later call may find more. It returns a *DamageError where the chain is broken, and
// ctx's error when that is done.
func (r *Reader) Next(ctx context.Context) (*Record, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rec, err := r.read()
		if err == nil {
			if rec.Seq < r.opt.From {
				continue
			}
			return rec, nil
		}
		if !errors.Is(err, io.EOF) || !r.opt.Follow {
			return nil, err
		}
		if err := r.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Close lets the open segment go.
func (r *Reader) Close() error {
	if r.f == nil {
		return nil
	}
	f := r.f
	r.f = nil
	return f.Close()
}

// read returns the next entry of the journal, or io.EOF.
func (r *Reader) read() (*Record, error) {
	if err := r.allow(); err != nil {
		return nil, err
	}
	if r.f == nil {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		line, err = r.advance()
	}
	if errors.Is(err, errLongLine) {
		err = r.damage(r.lines.off, err.Error())
	}
	if err != nil {
		return nil, err
	}
	return r.accept(line)
}

// next is the entry that the next line holds or leads to.
func (r *Reader) next() uint64 {
	if !r.known {
		return r.opt.From
	}
	return r.head.Seq + 1
}

// allow asks Limit before anything is read. What was read ahead under the old limit is read again under the new: it may
// have been a write that failed half way and was taken back.
func (r *Reader) allow() error {
	if r.opt.Limit == nil || r.next() <= r.limit {
		return nil
	}
	if r.limit = r.opt.Limit(); r.next() > r.limit {
		return io.EOF
	}
	if r.lines != nil {
		r.lines.discard()
	}
	return nil
}

// accept checks a line against the one before.
func (r *Reader) accept(line []byte) (*Record, error) {
	start := r.lines.off - int64(len(line)) - 1
	if err := ParseLine(line, &r.rec); err != nil {
		return nil, r.damage(start, err.Error())
	}
	if !r.known {
		// Reading begins here, so this line's prev is taken at its word, but for the first entry of all.
		r.head = Head{Seq: r.rec.Seq - 1, Hash: r.rec.Prev}
		if start == 0 {
			r.head.Seq = r.first - 1
		}
		if r.head.Seq == 0 {
			r.head = Head{}
		}
	}
	if reason := chainFault(r.head, &r.rec); reason != "" {
		return nil, r.damage(start, reason)
	}
	r.known = true
	r.rec.Hash = hashLine(line)
	r.rec.Segment, r.rec.Offset = r.first, start
	r.head = Head{Seq: r.rec.Seq, Hash: r.rec.Hash}
	return &r.rec, nil
}

func (r *Reader) damage(off int64, reason string) *DamageError {
	return &DamageError{File: segmentPath(r.dir, r.first), Offset: off, Seq: r.next(), Reason: reason}
}

func (r *Reader) wait(ctx context.Context) error {
	t := time.NewTimer(r.opt.Poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.opt.Notify:
		return nil
	case <-t.C:
		return nil
	}
}
