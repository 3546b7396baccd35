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
	if dead == nil {
		l.syncing = covers
		l.toBegin.reached(covers.Seq)
	}
	l.mu.Unlock()
	if dead != nil {
		return before.Seq, dead
	}
	if err := f.Sync(); err != nil {
		return before.Seq, l.stop(fmt.Errorf("sync journal: %w", err))
	}
	l.mu.Lock()
	l.synced = covers
	l.toSync.reached(covers.Seq)
	l.mu.Unlock()
	if covers.Seq > 0 && covers != before {
		l.writeMark(covers)
	}
	return covers.Seq, nil
}

// AwaitSynced returns when entry seq is durable, the log has stopped, or ctx is done. Any goroutine may call it.
func (l *Log) AwaitSynced(ctx context.Context, seq uint64) { l.await(ctx, seq, &l.synced, &l.toSync) }

// AwaitSyncing returns when an fsync of entry seq has begun, the log has stopped, or ctx is done. Any goroutine may call it.
func (l *Log) AwaitSyncing(ctx context.Context, seq uint64) {
	l.await(ctx, seq, &l.syncing, &l.toBegin)
}

func (l *Log) await(ctx context.Context, seq uint64, at *Head, w *waiters) {
	for {
		l.mu.Lock()
		if at.Seq >= seq || l.dead != nil {
			l.mu.Unlock()
			return
		}
		told := w.add(seq)
		l.mu.Unlock()
		select {
		case <-told:
		case <-ctx.Done():
			return
		}
	}
}

// waiters are the callers that wait for an entry. The log's mu is locked for its methods.
type waiters struct {
	first uint64        // the first entry that one waits for; 0: none does
	told  chan struct{} // closed when first is reached, or the log has stopped
}

// add returns the channel that is closed when seq may have been reached.
func (w *waiters) add(seq uint64) (told chan struct{}) {
	if w.told == nil {
		w.told = make(chan struct{})
	}
	if w.first == 0 || seq < w.first {
		w.first = seq
	}
	return w.told
}

// reached wakes all callers if one waits for seq or an entry before it.
func (w *waiters) reached(seq uint64) {
	if w.first != 0 && seq >= w.first {
		w.tell()
	}
}

// tell wakes all callers.
func (w *waiters) tell() {
	if w.told != nil {
		close(w.told)
		*w = waiters{}
	}
}

// writeMark moves the head mark. If that fails, the mark is only older, and the entries are not affected.
func (l *Log) writeMark(h Head) {
	l.markBuf = appendMark(l.markBuf[:0], h)
	if _, err := l.mark.WriteAt(l.markBuf, 0); err != nil {
		l.opt.Trouble(fmt.Errorf("write head mark: %w", err))
	}
}
