package journal

import (
	"errors"
	"fmt"
	"syscall"
)

// The reserve is allocated room beyond the end of the last segment, which no other file can take.
// Flush does not use it: if its data and the whole reserve do not fit, it fails as on a full disk,
// before it writes. FlushFromReserve may use it. It lies beyond the file's size, so it is never
// read, and no start examines it.

// checkpointRoom is what is kept for checkpoints, in bytes: some forty of them.
const checkpointRoom = 16 << 10

// extent is the room that the disk keeps for a file.
type extent struct {
	end    int64 // in bytes from the start of the file; the size or less if nothing is kept
	cannot bool  // nothing can be kept for this file
}

// keep allocates room for need bytes beyond size, or for step more if that is available, so that it
// rarely has to. It fails only if there is no room for need. On a file system that cannot allocate,
// the write itself fails instead.
func (l *Log) keep(e *extent, f File, size, need, step int64) error {
	if l.opt.ReserveBytes == 0 || e.cannot || size+need <= e.end {
		return nil
	}
	err := f.Allocate(size, need+step)
	if step > 0 && noRoom(err) {
		// Some file systems, such as ext4, keep what they had found when they ran out of room: the step is no reason to fail.
		step = 0
		err = f.Allocate(size, need)
	}
	switch {
	case err == nil:
		e.end = size + need + step
	case noRoom(err):
		return fmt.Errorf("keep room for the journal: %w", err)
	default:
		e.cannot = true
		l.opt.Trouble(fmt.Errorf("keep room for the journal, which has no reserve for a full disk now: %w", err))
	}
	return nil
}

func isDamage(err error) bool {
	_, ok := errors.AsType[*DamageError](err)
	return ok
}

// noRoom reports whether there is no room for what was asked, and there may be for less.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// Kept is how much room the disk keeps beyond the end of the journal, in bytes, which FlushFromReserve can use: for the
// owner.
func (l *Log) Kept() int64 {
	if l.full {
		return 0
	}
	return max(0, l.room.end-l.size)
}

// gaveBack notes that the file was cut to size.
func (e *extent) gaveBack(size int64) { e.end = min(e.end, size) }

// keepReserve has a start keep what it can, for the entries and for the checkpoint at the end. Room that the process before
// kept is still there on a disk that is full.
func (l *Log) keepReserve() {
	reserve := l.opt.ReserveBytes
	if err := l.keep(&l.room, l.seg, l.size, reserve, reserve); err != nil {
		l.opt.Trouble(err)
	}
	l.checkRoom.cannot = l.room.cannot
	if l.checks != nil {
		_ = l.keep(&l.checkRoom, l.checks, l.checkSize, checkpointRoom, 0)
	}
}

// makeRoom readies the segment for what was appended, and begins another if it would be too long. It leaves the reserve
// whole.
func (l *Log) makeRoom() error {
	reserve, need := l.opt.ReserveBytes, int64(len(l.buf))
	if l.full || l.size > 0 && l.size+need > l.opt.SegmentBytes {
		err := l.rotateInFlush(need+reserve, reserve)
		if err == nil || l.full || l.stopCause() != nil || noRoom(err) || isDamage(err) {
			return err
		}
		// There is no descriptor for another segment, or something like that: this one takes more until there is.
		l.late(err)
	}
	return l.keep(&l.room, l.seg, l.size, need+reserve, reserve)
}

// rotateInFlush is rotate for an owner that did not call Rotate in time, and signs the end of the old segment.
func (l *Log) rotateInFlush(need, step int64) error {
	if err := l.beginSegment(need, step); err != nil {
		return err
	}
	// Trouble has been told of an error that does not stop the log: the next segment's first prev protects the old one's end.
	if err := l.checkpointSynced(uint64(l.opt.CheckpointEvery)); err != nil {
		return l.stopCause()
	}
	return nil
}

// useReserve readies the segment for what was appended after makeRoom could not. No segment is begun on a full disk, unless
// none can be written else.
func (l *Log) useReserve() error {
	need := int64(len(l.buf))
	if l.full {
		return l.rotateInFlush(need, 0)
	}
	return l.keep(&l.room, l.seg, l.size, need, 0)
}
