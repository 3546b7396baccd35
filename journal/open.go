package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// Open recovers the journal in o.Dir and opens it for writing. It returns a *DamageError if the
// files contradict each other, and ErrLocked if another process writes there.
//
// Before it returns, everything that it found is durable, including entries that the previous process wrote and did not
// sync. If it is interrupted, the next Open finds the same entries.
func Open(o Options) (*Log, *Recovery, error) {
	o, key, err := o.withDefaults()
	if err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	if err := makeDir(o); err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	locked, err := o.FS.Lock(o.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open journal: %w", err)
	}
	// The lock is held, so the files that are examined are the files that are repaired.
	l := &Log{opt: o, key: key, dir: locked, syncMu: newIOLock(), checkMu: newIOLock(), rotateAt: rotateAt(o)}
	rec, err := l.restore()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open journal: %w", err), l.release())
	}
	return l, rec, nil
}

// makeDir always syncs the parent: the process that made the directory may have died before it did.
func makeDir(o Options) error {
	if err := o.FS.Mkdir(o.Dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.FS.SyncDir(filepath.Dir(o.Dir))
}

// restore examines the files, repairs and opens them.
func (l *Log) restore() (*Recovery, error) {
	x, err := examine(l.opt.FS, l.opt.Dir)
	if err != nil {
		return nil, err
	}
	if err := l.openMark(); err != nil {
		return nil, err
	}
	if err := l.moveMarkBack(x); err != nil {
		return nil, err
	}
	if err := l.openSegment(x); err != nil {
		return nil, err
	}
	if err := l.openChecks(x); err != nil {
		return nil, err
	}
	if err := l.finish(x); err != nil {
		return nil, err
	}
	l.keepReserve()
	// All names, also those that the previous process made, become durable before anything is acknowledged.
	if err := l.dir.Sync(); err != nil {
		return nil, fmt.Errorf("sync journal directory: %w", err)
	}
	l.head, l.written, l.flushed, l.syncing, l.synced = x.head, x.head, x.head, x.head, x.head
	// The mark moves only now: an interrupted start has acknowledged nothing.
	if x.head.Seq > 0 {
		l.writeMark(x.head)
	}
	// With another key than that of the last checkpoint, nothing is signed before the owner can read in the entries whose
	// key it is.
	if x.lastCheck.Seq > 0 && x.lastCheck.Key != l.key {
		return &x.rec, nil
	}
	// Trouble has reported an error that does not stop the log.
	if err := l.checkpointSynced(1); err != nil && l.stopCause() != nil {
		return nil, err
	}
	return &x.rec, nil
}

// openSegment opens the last segment, or creates the first. It leaves in it only entries, all of them durable.
func (l *Log) openSegment(x *examiner) (err error) {
	if len(x.firsts) == 0 {
		l.seg, err = createSegment(l.opt, 1)
		l.target = l.seg
		x.rec.Segments = 1
		return err
	}
	l.seg, err = l.opt.FS.Create(segmentPath(l.opt.Dir, x.firsts[len(x.firsts)-1]))
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	l.target, l.size = l.seg, x.size
	// The fsync below makes the cut durable before anything is written after it: see takeBack.
	if x.rec.Cut != nil {
		if err := l.seg.Truncate(x.size); err != nil {
			return fmt.Errorf("cut torn write: %w", err)
		}
	}
	if err := rewriteRange(l.seg, x.vouched, x.size); err != nil {
		return fmt.Errorf("write unsynced entries again: %w", err)
	}
	if err := l.seg.Sync(); err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	return nil
}

// rewriteRange writes the bytes from start to end over themselves. After a failed fsync the operating system may consider
// pages clean that never reached the disk; only writing them again makes the next fsync include them.
func rewriteRange(f File, start, end int64) error {
	buf := make([]byte, min(1<<20, max(0, end-start)))
	for off := start; off < end; off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), end-off)]
		if n, err := f.ReadAt(buf, off); n < len(buf) {
			return err
		}
		if _, err := f.WriteAt(buf, off); err != nil {
			return err
		}
	}
	return nil
}

// openMark does not change the mark, which stays the lower bound for the next start if this one fails.
func (l *Log) openMark() (err error) {
	if l.mark, err = l.opt.FS.Create(filepath.Join(l.opt.Dir, markName)); err != nil {
		return fmt.Errorf("open head mark: %w", err)
	}
	size, err := l.mark.Size()
	if err == nil && size > markLen {
		err = l.mark.Truncate(markLen)
	}
	if err != nil {
		return fmt.Errorf("open head mark: %w", err)
	}
	return nil
}

// moveMarkBack moves the mark before an entry whose line is about to be cut. If the start dies in between, the next one
// finds a torn line that no proof covers.
func (l *Log) moveMarkBack(x *examiner) error {
	if x.rec.Cut == nil || !x.rec.Cut.Answered {
		return nil
	}
	if x.head.Seq == 0 {
		if err := l.mark.Truncate(0); err != nil {
			return fmt.Errorf("take back head mark: %w", err)
		}
	} else if _, err := l.mark.WriteAt(appendMark(nil, x.head), 0); err != nil {
		return fmt.Errorf("take back head mark: %w", err)
	}
	if err := l.mark.Sync(); err != nil {
		return fmt.Errorf("sync head mark: %w", err)
	}
	return nil
}

// openChecks opens the checkpoints if there is a key to sign with. It creates the file before the first entry, so that
// Verify can tell when it is missing.
func (l *Log) openChecks(x *examiner) (err error) {
	l.checked, l.checkSize = x.lastCheck.Seq, x.checkpointed
	l.checkDue = l.checked + uint64(l.opt.CheckpointEvery)
	if l.key == "" {
		return nil
	}
	if x.lastCheck.Seq > 0 && x.lastCheck.Key != l.key {
		x.rec.Notes = append(x.rec.Notes, "the last checkpoint was signed with another key: "+x.lastCheck.Key)
	}
	if l.checks, err = l.opt.FS.Create(filepath.Join(l.opt.Dir, checkpointsName)); err != nil {
		return fmt.Errorf("open checkpoints: %w", err)
	}
	if x.rec.CheckpointCut > 0 {
		if err := l.checks.Truncate(l.checkSize); err != nil {
			return fmt.Errorf("cut torn checkpoint: %w", err)
		}
	}
	// As for the segment, make it durable before appending to it. Only the last line may not be durable yet.
	if err := rewriteRange(l.checks, x.lastCheckAt, l.checkSize); err != nil {
		return fmt.Errorf("write last checkpoint again: %w", err)
	}
	if err := l.checks.Sync(); err != nil {
		return fmt.Errorf("sync checkpoints: %w", err)
	}
	return nil
}

var _ io.Closer = (*Log)(nil)

// A Recovery is the result of Open.
type Recovery struct {
	Entries       uint64 // entries in the journal now, including archived ones
	Head          Head   // the last of them
	Segments      int
	Anchor        *Anchor  // of the archived entries; nil: none
	Vouched       uint64   // the last entry that a checkpoint or the head mark was found to agree with
	Cut           *Cut     // the end of the last segment that was cut off; nil: nothing
	CheckpointCut int64    // bytes of a torn checkpoint that were cut
	Notes         []string // other messages for the operator
}

// A Cut is the end of an unfinished write. No client got an acknowledgment for it, unless Answered is set.
type Cut struct {
	File   string // path of the segment
	Offset int64  // its length now, in bytes
	Bytes  int64  // what was cut
	After  uint64 // the last entry before the cut, or 0

	// Answered means that the head mark covers the torn line: the entry after After is lost, and a client may have got its
	// answer. No crash causes this if fsync works as documented.
	Answered bool
}
