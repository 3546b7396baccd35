package journal

import (
	"errors"
	"fmt"
	"io"
)

// CheckpointDue says whether Options.CheckpointEvery entries were synced since the last checkpoint, or since the last try, or
// whether Rotate ended a segment. It is false while a checkpoint is being written: whoever wrote one asks again.
func (l *Log) CheckpointDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opt.Signer != nil && l.dead == nil && !l.signing && (l.ended.Seq > 0 || l.synced.Seq >= l.checkDue)
}

// CheckpointWaits says whether a sync would make a checkpoint due that is not due yet: for the owner, who may have no other
// reason to sync.
func (l *Log) CheckpointWaits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opt.Signer != nil && l.dead == nil && l.flushed.Seq >= l.checkDue && l.synced.Seq < l.checkDue
}

// Unsign has the log sign nothing any more, not at Close either: the key is not the one to vouch for these entries. It is for
// the owner, before anything is appended.
func (l *Log) Unsign() { l.opt.Signer = nil }

// Checkpoint signs the last synced entry, and the last one of a segment that Rotate ended, and writes that down, durably, where
// it is due. An error other than ErrStopped leaves the journal as good as it was: the next try is due after as many entries
// again.
func (l *Log) Checkpoint() error { return l.checkpoint(uint64(l.opt.CheckpointEvery)) }

// checkpoint writes that of a segment's end, and one of what is synced if at least after entries were since the last.
func (l *Log) checkpoint(after uint64) error {
	if l.opt.Signer == nil {
		return nil
	}
	l.checkMu.Lock()
	defer l.checkMu.Unlock()
	defer l.signed()
	for more := true; more; {
		var h Head
		var err error
		if h, more, err = l.nextCheckpoint(after); err != nil || h.Seq == 0 {
			return err
		}
		if err := l.writeCheckpoint(h); err != nil {
			l.opt.Trouble(err)
			return err
		}
	}
	return nil
}

// nextCheckpoint is the head of which a checkpoint is to be written, with checkMu held; the zero Head where none is due.
// With more it is a segment's end, and another may be due.
func (l *Log) nextCheckpoint(after uint64) (h Head, more bool, dead error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, l.ended = l.ended, Head{}
	if more = h.Seq > l.checked; !more {
		h = l.synced
		if h.Seq <= l.checked || h.Seq < l.checked+after {
			h = Head{}
		}
	}
	if l.dead != nil || h.Seq == 0 {
		return Head{}, false, l.dead
	}
	// Set before it is known how this try ends, so that one that fails is not followed by one at each fsync.
	l.checkDue = h.Seq + uint64(l.opt.CheckpointEvery)
	l.signing = true
	return h, more, nil
}

func (l *Log) signed() {
	l.mu.Lock()
	l.signing = false
	l.mu.Unlock()
}

// writeCheckpoint appends the checkpoint of h, with checkMu held. h is durable already, so no power cut can leave a
// checkpoint that speaks of a lost entry.
func (l *Log) writeCheckpoint(h Head) error {
	if err := l.cutCheckpoint(); err != nil {
		return err
	}
	c, err := signCheckpoint(l.opt.Signer, l.key, h, l.opt.Now().UnixMilli())
	if err != nil {
		return err
	}
	l.checkBuf = append(c.AppendLine(l.checkBuf[:0]), '\n')
	// Where there is no room to keep, the write finds out.
	_ = l.keep(&l.checkRoom, l.checks, l.checkSize, int64(len(l.checkBuf)), checkpointRoom)
	n, err := l.checks.WriteAt(l.checkBuf, l.checkSize)
	if err == nil && n < len(l.checkBuf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		l.checkCut = true
		return errors.Join(fmt.Errorf("write checkpoint: %w", err), l.cutCheckpoint())
	}
	if err := l.checks.Sync(); err != nil {
		return l.stop(fmt.Errorf("sync checkpoints: %w", err))
	}
	l.checkSize += int64(n)
	l.checked = h.Seq
	return nil
}

// cutCheckpoint removes what a failed write left of a checkpoint, with checkMu held. As in cutBack, that is durable before
// the next one is written.
func (l *Log) cutCheckpoint() error {
	if !l.checkCut {
		return nil
	}
	if err := l.checks.Truncate(l.checkSize); err != nil {
		return fmt.Errorf("cut failed checkpoint off: %w", err)
	}
	l.checkRoom.gaveBack(l.checkSize)
	if err := l.checks.Sync(); err != nil {
		return l.stop(fmt.Errorf("sync checkpoints: %w", err))
	}
	l.checkCut = false
	return nil
}
