package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// nextName is the name of a segment that has no room or no final name yet. It has no entries.
const nextName = "next"

// rotateAt returns the size in bytes at which a segment ends. The rest up to SegmentBytes is for an owner that must wait
// for a Sync first.
func rotateAt(o Options) int64 { return o.SegmentBytes - o.SegmentBytes/4 }

// RotateDue reports whether the segment is full, or would be with the appended entries. An owner
// that asks before each Flush, and then calls Rotate, never waits in Flush for a new segment. After
// a failed Rotate it is false until the next Flush.
func (l *Log) RotateDue() bool {
	return !l.rotated && (l.full || l.size > 0 && l.size+int64(len(l.buf)) > l.rotateAt)
}

// Rotate syncs, and starts the next segment: flushed entries are durable when it returns, and the next Flush writes to the
// new segment. It fails only with ErrStopped. If no segment can be created, it calls Options.Trouble once, unless the disk
// is full, and the next Flush continues in the old one, without a limit of its length.
//
// The checkpoint of the old segment is then due, but Rotate does not write it.
func (l *Log) Rotate() (through uint64, err error) {
	if l.size == 0 && !l.full || l.stopCause() != nil {
		return l.Sync()
	}
	reserve := l.opt.ReserveBytes
	if err = l.cutBack(); err == nil {
		err = l.beginSegment(reserve, reserve)
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

// EndSegment starts the next segment before this one is full, unless it is empty: see Rotate. Complete segments can be
// archived, and their lines rewritten. It returns the error if no segment can be created, and does not report it otherwise.
func (l *Log) EndSegment() (through uint64, err error) {
	if l.size > 0 && l.stopCause() == nil {
		if err = l.cutBack(); err == nil {
			err = l.beginSegment(l.opt.ReserveBytes, l.opt.ReserveBytes)
		}
	}
	through, failed := l.Sync()
	return through, cmp.Or(failed, err)
}

// late reports once that the next segment could not be started.
func (l *Log) late(err error) {
	if !l.overdue {
		l.overdue = true
		l.opt.Trouble(fmt.Errorf("begin segment, which a later write tries again: %w", err))
	}
}

// beginSegment starts the next segment. It first allocates room for need bytes, and step more; without room the old segment
// stays in use. The old segment is durable before the new one gets its name, and the name is durable before Sync can cover
// an entry in it.
func (l *Log) beginSegment(need, step int64) error {
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
	if l.room.end > l.size { // it is not needed any more
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

// prepare creates the file of the next segment and allocates its room. It gets its final name later: a reader that sees
// that name leaves the old segment permanently, although the old one stays in use if there is no room. If an attempt to
// rename it failed, it is unknown which name it has, so the file is created with the final name.
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

// begin ends the old segment and renames the new one to its final name. syncMu is locked.
func (l *Log) begin() error {
	if _, err := l.syncFlushed(); err != nil {
		return err
	}
	if !l.full {
		if err := checkFree(l.opt, l.written.Seq+1); err != nil {
			return err
		}
		// From here on nothing is written to the old segment, not even a batch that would fit, unless all steps succeed:
		// the new name may exist, and says which entry the new one begins with.
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

// createNext creates an empty segment without its final name. An unused one may exist already.
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

// checkFree returns an error if another process has created the segment of entry first.
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

// createSegment creates an empty segment with its final name. One may exist from a failed attempt.
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

// notEmpty returns an error if a segment has data: another process is writing this journal.
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
