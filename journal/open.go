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
// Before it returns, everything that it found is durable: an entry that the previous process wrote
// and never synced is then like any other. A crash at any point of it leaves a journal that opens
// with the same entries.
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
	// The lock is taken, so the files that are examined are the files that are repaired.
	l := &Log{opt: o, key: key, dir: locked, syncMu: newIOLock(), checkMu: newIOLock(), rotateAt: rotateAt(o)}
	rec, err := l.restore()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open journal: %w", err), l.release())
	}
	return l, rec, nil
}

// makeDir syncs the parent each time: the process that made the directory may have died before it did.
func makeDir(o Options) error {
	if err := o.FS.Mkdir(o.Dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.FS.SyncDir(filepath.Dir(o.Dir))
}

// restore examines the files, then repairs them and opens each.
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
	// The names, and whatever names the process before had made, become durable before anything is promised.
	if err := l.dir.Sync(); err != nil {
		return nil, fmt.Errorf("sync journal directory: %w", err)
	}
	l.head, l.written, l.flushed, l.synced = x.head, x.head, x.head, x.head
	// The mark may move now and not before: a start that was cut short has promised nothing.
	if x.head.Seq > 0 {
		l.writeMark(x.head)
	}
	// Another key than the last one signs nothing before its owner had a chance to read in the entries whose key it is.
	if x.lastCheck.Seq > 0 && x.lastCheck.Key != l.key {
		return &x.rec, nil
	}
	// Trouble has been told of an error that does not stop the log.
	if err := l.checkpointSynced(1); err != nil && l.stopCause() != nil {
		return nil, err
	}
	return &x.rec, nil
}

// openSegment opens the last segment, or makes the first, and leaves nothing in it that is not an entry and not on disk.
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
	// The cut is durable with the fsync below, before anything is written after it: see takeBack.
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

// rewriteRange writes the bytes from start to end over themselves. After an fsync that failed, the operating system may hold
// pages that it calls clean and that never reached the disk; only writing them again makes the next fsync carry them.
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

// openMark does not change what the mark says: it is still the bound for the next start if this one does not finish.
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

// moveMarkBack takes back what the mark says of an entry whose line is about to be cut, before it is cut: a start that dies
// in between finds a torn line that nothing vouches for.
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

// openChecks opens the checkpoints if there is a key to sign with, and makes the file before the
// first entry, so that Verify can tell when it is missing.
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
	// As with the segment, make it durable before building on it; only the last line may not be
	// durable yet.
	if err := rewriteRange(l.checks, x.lastCheckAt, l.checkSize); err != nil {
		return fmt.Errorf("write last checkpoint again: %w", err)
	}
	if err := l.checks.Sync(); err != nil {
		return fmt.Errorf("sync checkpoints: %w", err)
	}
	return nil
}

var _ io.Closer = (*Log)(nil)

// A Recovery is what Open found and did.
type Recovery struct {
	Entries       uint64 // entries in the journal now, archived ones too
	Head          Head   // the last of them
	Segments      int
	Anchor        *Anchor  // of what is archived; nil if nothing is
	Vouched       uint64   // the last entry that a checkpoint or the head mark was found right about
	Cut           *Cut     // what was cut off the last segment; nil if nothing was
	CheckpointCut int64    // bytes of a torn checkpoint that were cut
	Notes         []string // other things that an operator should read
}

// A Cut is the end of an unfinished write: no client was told that it was durable, unless it is
// Answered.
type Cut struct {
	File   string // path of the segment
	Offset int64  // its length now, in bytes
	Bytes  int64  // what was cut
	After  uint64 // the last entry before the cut, or 0

	// Answered means that the head mark vouches for the torn line: the entry after After is lost,
	// and a client may have been told that it was done. No crash causes that if fsync tells the
	// truth.
	Answered bool
}
