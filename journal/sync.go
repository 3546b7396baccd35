package journal

import "fmt"

// Sync makes durable what was flushed before it began, and returns the seq of the last entry that is durable now, also
// with an error. Where there is nothing new it costs a lock. It fails with ErrStopped only.
func (l *Log) Sync() (through uint64, err error) {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	nothing, through, dead := l.flushed == l.synced, l.synced.Seq, l.dead
	l.mu.Unlock()
	if nothing {
		return through, dead
	}
	return l.syncSegment()
}

// syncSegment fsyncs the segment, with syncMu held. The file and what it will cover are taken together, before the
// fsync: a Flush beside it is not covered, and a segment cannot be changed under it.
func (l *Log) syncSegment() (through uint64, err error) {
	l.mu.Lock()
	f, covers, before, dead := l.target, l.flushed, l.synced, l.dead
	l.mu.Unlock()
	if dead != nil {
		return before.Seq, dead
	}
	if err := f.Sync(); err != nil {
		return before.Seq, l.stop(fmt.Errorf("sync journal: %w", err))
	}
	l.mu.Lock()
	l.synced = covers
	l.mu.Unlock()
	if covers.Seq > 0 && covers != before {
		l.writeMark(covers)
	}
	return covers.Seq, nil
}

// writeMark moves the head mark. One that was not written only lags, so the entries are none the worse for it.
func (l *Log) writeMark(h Head) {
	l.markBuf = appendMark(l.markBuf[:0], h)
	if _, err := l.mark.WriteAt(l.markBuf, 0); err != nil {
		l.opt.Trouble(fmt.Errorf("write head mark: %w", err))
	}
}

// rotate begins the next segment. The old one is durable before the new one has a name, and the name before Sync can
// cover an entry in it.
func (l *Log) rotate() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if _, err := l.syncSegment(); err != nil {
		return err
	}
	// Trouble has been told of an error that does not stop the log: the next segment's first prev protects this one's end.
	if err := l.checkpoint(1); err != nil {
		if dead := l.stopCause(); dead != nil {
			return dead
		}
	}
	// From here on the old segment is not written again, also not by a batch that would fit: a creation that fails may
	// leave the file behind, and its name says what it begins with.
	l.full = true
	f, err := createSegment(l.opt, l.written.Seq+1)
	if err != nil {
		return err
	}
	if err := l.opt.FS.SyncDir(l.opt.Dir); err != nil {
		return l.stop(fmt.Errorf("sync journal directory: %w (close: %v)", err, f.Close()))
	}
	old := l.seg
	l.seg, l.size, l.full = f, 0, false
	l.mu.Lock()
	l.target = f
	l.mu.Unlock()
	if err := old.Close(); err != nil {
		l.opt.Trouble(fmt.Errorf("close full segment: %w", err))
	}
	return nil
}

// createSegment makes an empty segment. One of that name may be there from a creation that failed half way, empty; with
// anything in it, somebody else is writing this journal.
func createSegment(o Options, first uint64) (File, error) {
	path := segmentPath(o.Dir, first)
	f, err := o.FS.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	size, err := f.Size()
	if err == nil && size > 0 {
		err = &DamageError{
			File: path, Seq: first, Remedy: remedySegment,
			Reason: "the segment was not there at the start and is not empty",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create segment: %w (close: %v)", err, f.Close())
	}
	return f, nil
}
