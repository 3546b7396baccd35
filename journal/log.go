package journal

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// keepBuffer is how many bytes of the write buffer are kept after a flush, so that a burst does not occupy memory
// permanently.
const keepBuffer = 4 << 20

// A Log is a journal open for writing.
//
// Append, Flush, RotateDue and Close belong to one owner, a goroutine or an actor, and must not run
// concurrently. Sync, Checkpoint, CheckpointDue, CheckpointWaits, Written, Syncing and Synced may run
// concurrently with them, and with each other. So may Rotate; until it returns the owner calls only
// Append and Head.
type Log struct {
	opt Options
	key string // canonical line of the signer's key
	dir Dir    // locked; open for the life of the log, so that a rotation can sync it without another descriptor

	// Used only by the owner.
	buf     []byte // lines appended and not yet written, each with its '\n'
	head    Head   // of the last line appended
	written Head   // of the last line written
	size    int64  // of the segment, up to and including that line
	seg     File
	room    extent // of the segment
	full    bool   // the segment takes no further entries
	uncut   bool   // the segment may be longer than size, after a failed write
	overdue bool   // the segment is too long: the next one could not be made
	closed  bool

	rotateAt int64 // the size at which the next segment starts
	rotated  bool  // a rotation has failed since the last Flush

	// syncMu is locked during an fsync of a segment, and while segments change. While it is locked,
	// all older segments are durable. It is locked before mu, and never while checkMu is.
	syncMu  ioLock
	mark    File
	markBuf []byte

	mu      sync.Mutex // locked for a few assignments, never for I/O
	target  File       // the segment, for Sync
	flushed Head       // written, for Sync
	syncing Head       // flushed when the last fsync began
	synced  Head
	ended   Head    // of the last complete segment, if no checkpoint of it was tried
	dead    error   // why the log stopped
	toBegin waiters // of AwaitSyncing
	toSync  waiters // of AwaitSynced

	checkMu   ioLock
	checks    File // nil without a signer
	checkRoom extent
	checkSize int64
	checkBuf  []byte
	checkCut  bool   // the file may be longer than checkSize, after a failed write
	checked   uint64 // the last entry with a checkpoint
	checkDue  uint64 // the entry from which another is due; under mu
	signing   bool   // a checkpoint is being written; under mu
}

// An ioLock is a mutex that may be locked during I/O. Unlike a sync.Mutex, waiting for it lets the
// clock of testing/synctest advance.
type ioLock chan struct{}

func newIOLock() ioLock { return make(ioLock, 1) }

func (l ioLock) Lock() { l <- struct{}{} }

func (l ioLock) Unlock() { <-l }

// Append adds an entry to the chain and the write buffer and returns its seq. It does no I/O and,
// once the buffer has grown, allocates nothing. The seq is void if the following Flush fails.
//
// It panics if e.Check fails: the line could not be read back, so the caller has a bug.
func (l *Log) Append(e *Entry) (seq uint64) {
	if err := e.Check(); err != nil {
		panic(fmt.Errorf("append entry: %w", err))
	}
	seq = l.head.Seq + 1
	start := len(l.buf)
	l.buf = appendLine(l.buf, seq, &l.head.Hash, e)
	l.head = Head{Seq: seq, Hash: hashLine(l.buf[start:])}
	l.buf = append(l.buf, '\n')
	return seq
}

// Flush writes all appended entries with one write. If it fails, none of them is in the journal:
// they are dropped, the next Append reuses the seq of the first, and a later Flush may succeed
// unless the error is ErrStopped. With ErrUncertain they are dropped too, but a crash before the
// next successful Flush may bring them back.
//
// It waits for an fsync only to undo a failed write, or to start the next segment if the owner did not call Rotate in time.
func (l *Log) Flush() error { return l.flushPending(false) }

// FlushFromReserve is Flush for entries that must be written on a full disk too: it may use the room of
// Options.ReserveBytes.
func (l *Log) FlushFromReserve() error { return l.flushPending(true) }

func (l *Log) flushPending(reserved bool) error {
	if err := l.stopCause(); err != nil {
		l.drop()
		return err
	}
	if len(l.buf) == 0 {
		return nil
	}
	l.rotated = false
	err := l.cutBack()
	if err == nil {
		err = l.makeRoom()
		if err != nil && reserved && l.stopCause() == nil && !isDamage(err) {
			err = l.useReserve()
		}
	}
	if err != nil {
		l.drop()
		return err
	}
	n, err := l.seg.WriteAt(l.buf, l.size)
	if err == nil && n < len(l.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		l.drop()
		return l.takeBack(fmt.Errorf("write journal: %w", err))
	}
	l.size += int64(n)
	l.written = l.head
	l.clear()
	l.mu.Lock()
	l.flushed = l.written
	l.mu.Unlock()
	return nil
}

// drop discards the appended entries that were not written.
func (l *Log) drop() {
	l.head = l.written
	l.clear()
}

func (l *Log) clear() {
	if cap(l.buf) > keepBuffer {
		l.buf = nil
	}
	l.buf = l.buf[:0]
}

// takeBack removes what a failed write left, now or before the next write. It returns the error for Flush.
func (l *Log) takeBack(cause error) error {
	l.uncut = true
	err := l.cutBack()
	switch {
	case err == nil:
		return cause
	case errors.Is(err, ErrStopped):
		return err
	}
	return fmt.Errorf("%w; %w: %w", cause, ErrUncertain, err)
}

// cutBack removes what a failed write left, durably before anything is written in its place: otherwise a power cut could
// mix blocks of both writes.
func (l *Log) cutBack() error {
	if !l.uncut {
		return nil
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if err := l.seg.Truncate(l.size); err != nil {
		return fmt.Errorf("cut failed write off: %w", err)
	}
	l.room.gaveBack(l.size)
	if _, err := l.syncSegment(); err != nil {
		return err
	}
	l.uncut = false
	return nil
}

// Close writes and syncs the appended entries, signs a checkpoint and closes the files. Calling it
// again does nothing. No Sync, Rotate or Checkpoint may be running.
func (l *Log) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.Flush()
	if err == nil {
		_, err = l.Sync()
	}
	if err == nil {
		err = l.checkpointSynced(1)
	}
	if err == nil && l.Synced() > 0 {
		err = l.mark.Sync()
	}
	_ = l.stop(ErrClosed)
	return errors.Join(err, l.release())
}

// release closes all files.
func (l *Log) release() error {
	var err error
	for _, c := range []io.Closer{l.seg, l.mark, l.checks, l.dir} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// Head returns the last appended entry, which the next Flush writes. Only the owner may call it.
func (l *Log) Head() Head { return l.head }

// Written returns the seq of the last entry that a reader of the files can see.
func (l *Log) Written() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flushed.Seq
}

// Syncing returns the seq of the last entry for which an fsync has begun. Until that has ended, a power cut may take it.
func (l *Log) Syncing() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncing.Seq
}

// Synced returns the seq of the last durable entry.
func (l *Log) Synced() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced.Seq
}

// stop makes every later call fail with its result. The first cause stays.
func (l *Log) stop(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead == nil {
		l.dead = fmt.Errorf("%w: %w", ErrStopped, cause)
		l.toBegin.tell()
		l.toSync.tell()
	}
	return l.dead
}

func (l *Log) stopCause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}
