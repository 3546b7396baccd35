package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// nextName is that of a segment which has no room or no name yet. Nothing in it is an entry.
const nextName = "next"

// rotateAt is the size in bytes from which on a segment is to be ended. What is left up to SegmentBytes is for an owner that
// has a Sync to wait for first.
func rotateAt(o Options) int64 { return o.SegmentBytes - o.SegmentBytes/4 }

// RotateDue says whether the segment is full, or would be with what was appended. An owner that asks before each Flush, and has
// Rotate called where it is so, never waits in Flush for a segment to be begun. After a Rotate that failed it is false until
// the next Flush.
func (l *Log) RotateDue() bool {
	return !l.rotated && (l.full || l.size > 0 && l.size+int64(len(l.buf)) > l.rotateAt)
}

// Rotate is Sync, and begins the next segment: what was flushed is durable when it returns, and the next Flush writes there.
// It fails with ErrStopped only. Where no segment can be begun, Options.Trouble is told once, unless the disk is full, and the
// next Flush goes on in the old one, as long as that may become.
//
// A checkpoint of the segment that was ended is due then, and not written here.
func (l *Log) Rotate() (through uint64, err error) {
	if l.size == 0 && !l.full || l.stopCause() != nil {
		return l.Sync()
	}
	reserve := l.opt.ReserveBytes
	if err = l.cutBack(); err == nil {
		err = l.rotate(reserve, reserve)
	}
	if err != nil && l.stopCause() == nil {
		l.rotated = true
		l.rotateAt = l.size + l.opt.SegmentBytes/16
		if !noRoom(err) {
			l.late(err)
		}
	}
	return l.Sync()
}

// EndSegment begins the next segment although there is room in this one, unless it is empty: see Rotate. Segments that are
// complete can be archived, and their lines rewritten. A failure to begin one is returned, and told to nobody else.
func (l *Log) EndSegment() (through uint64, err error) {
	if l.size > 0 && l.stopCause() == nil {
		if err = l.cutBack(); err == nil {
			err = l.rotate(l.opt.ReserveBytes, l.opt.ReserveBytes)
		}
	}
	through, failed := l.Sync()
	return through, cmp.Or(failed, err)
}

// late tells once that the next segment could not be begun.
func (l *Log) late(err error) {
	if !l.overdue {
		l.overdue = true
		l.opt.Trouble(fmt.Errorf("begin segment, which a later write tries again: %w", err))
	}
}

// rotate begins the next segment. That one gets room for need bytes, and step more, before anything else happens: where
// there is none, the old one stays what it was. The old one is durable before the new one has its name, and the name before
// Sync can cover an entry in it.
func (l *Log) rotate(need, step int64) error {
	f, room, err := l.prepare(need, step)
	if err != nil {
		return err
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.begin(); err != nil {
		return fmt.Errorf("%w (close: %v)", err, f.Close())
	}
	old := l.seg
	if l.room.end > l.size { // which nobody needs any more
		if err := old.Truncate(l.size); err != nil {
			l.opt.Trouble(fmt.Errorf("give back room of full segment: %w", err))
		}
	}
	l.seg, l.size, l.full, l.overdue, l.room = f, 0, false, false, room
	l.rotateAt = rotateAt(l.opt)
	l.mu.Lock()
	l.target, l.ended = f, l.written
	l.mu.Unlock()
	if err := old.Close(); err != nil {
		l.opt.Trouble(fmt.Errorf("close full segment: %w", err))
	}
	return nil
}

// prepare makes the file of the next segment and keeps room for it. The name comes later: a reader that finds it goes on
// there, and never looks again at the old segment, which is still written where there is no room. Once a name could not be
// given, nobody knows which the file has, and it is made with it.
func (l *Log) prepare(need, step int64) (f File, room extent, err error) {
	if l.full {
		f, err = createSegment(l.opt, l.written.Seq+1)
	} else {
		f, err = createNext(l.opt)
	}
	if err != nil {
		return nil, room, err
	}
	if err := l.keep(&room, f, 0, need, step); err != nil {
		return nil, room, fmt.Errorf("%w (close: %v)", err, f.Close())
	}
	return f, room, nil
}

// begin ends the old segment and gives the new one its name, with syncMu held.
func (l *Log) begin() error {
	if _, err := l.syncFlushed(); err != nil {
		return err
	}
	if !l.full {
		if err := checkFree(l.opt, l.written.Seq+1); err != nil {
			return err
		}
		// From here on the old segment is not written again, also not by a batch that would fit, unless all goes well: the
		// name may be there, and says what the new one begins with.
		l.full = true
		if err := l.opt.FS.Rename(filepath.Join(l.opt.Dir, nextName), segmentPath(l.opt.Dir, l.written.Seq+1)); err != nil {
			return fmt.Errorf("name segment: %w", err)
		}
	}
	if err := l.dir.Sync(); err != nil {
		return l.stop(fmt.Errorf("sync journal directory: %w", err))
	}
	return nil
}

// createNext makes an empty segment without a name. One may be there that never got its own.
func createNext(o Options) (File, error) {
	f, err := o.FS.Create(filepath.Join(o.Dir, nextName))
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	size, err := f.Size()
	if err == nil && size > 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, fmt.Errorf("create segment: %w (close: %v)", err, f.Close())
	}
	return f, nil
}

// checkFree returns an error where somebody else has begun the segment of the entry first.
func checkFree(o Options, first uint64) error {
	path := segmentPath(o.Dir, first)
	f, err := o.FS.Open(path)
	if err == nil {
		err = errors.Join(notEmpty(f, path, first), f.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("name segment: %w", err)
	}
	return nil
}

// createSegment makes an empty segment with its name. One may be there from an attempt that failed half way.
func createSegment(o Options, first uint64) (File, error) {
	path := segmentPath(o.Dir, first)
	f, err := o.FS.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	if err := notEmpty(f, path, first); err != nil {
		return nil, fmt.Errorf("create segment: %w (close: %v)", err, f.Close())
	}
	return f, nil
}

// notEmpty returns an error for a segment with anything in it: somebody else is writing this journal.
func notEmpty(f File, path string, first uint64) error {
	size, err := f.Size()
	if err == nil && size > 0 {
		err = &DamageError{
			File: path, Seq: first, Remedy: remedySegment,
			Reason: "the segment was not there at the start and is not empty",
		}
	}
	return err
}
