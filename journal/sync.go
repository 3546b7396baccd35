package journal

import (
	"context"
	"fmt"
)

// Sync makes durable what was flushed before it began, and returns the seq of the last durable entry, also with an error.
// It is cheap if there is nothing to sync. It fails only with ErrStopped.
func (l *Log) Sync() (through uint64, err error) {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	return l.syncFlushed()
}

// syncFlushed fsyncs the segment if it has unsynced entries. syncMu is locked.
func (l *Log) syncFlushed() (through uint64, err error) {
	l.mu.Lock()
	nothing, through, dead := l.flushed == l.synced, l.synced.Seq, l.dead
	l.mu.Unlock()
	if nothing {
		return through, dead
	}
	return l.syncSegment()
}

// syncSegment fsyncs the segment. It reads the file and the covered head together before the fsync: a concurrent Flush is
// not covered, and the segment cannot change meanwhile. syncMu is locked.
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
	if l.awaited != 0 && covers.Seq >= l.awaited {
		l.tellReached()
	}
	l.mu.Unlock()
	if covers.Seq > 0 && covers != before {
		l.writeMark(covers)
	}
	return covers.Seq, nil
}

// AwaitSynced returns when entry seq is durable, the log has stopped, or ctx is done. Any goroutine may call it.
func (l *Log) AwaitSynced(ctx context.Context, seq uint64) {
	for {
		l.mu.Lock()
		if l.synced.Seq >= seq || l.dead != nil {
			l.mu.Unlock()
			return
		}
		if l.reached == nil {
			l.reached = make(chan struct{})
		}
		if l.awaited == 0 || seq < l.awaited {
			l.awaited = seq
		}
		reached := l.reached
		l.mu.Unlock()
		select {
		case <-reached:
		case <-ctx.Done():
			return
		}
	}
}

// tellReached wakes all callers of AwaitSynced. mu is locked.
func (l *Log) tellReached() {
	if l.reached != nil {
		close(l.reached)
		l.reached, l.awaited = nil, 0
	}
}

// writeMark moves the head mark. If that fails, the mark is only older, and the entries are not affected.
func (l *Log) writeMark(h Head) {
	l.markBuf = appendMark(l.markBuf[:0], h)
	if _, err := l.mark.WriteAt(l.markBuf, 0); err != nil {
		l.opt.Trouble(fmt.Errorf("write head mark: %w", err))
	}
}
