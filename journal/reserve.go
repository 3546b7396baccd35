package journal

import (
	"errors"
	"fmt"
	"syscall"
)

// The reserve is allocated room after the end of the last segment, which no other file can take. Flush does not use it: if
// its data and the whole reserve do not fit, it fails as on a full disk, before it writes. FlushFromReserve may use it. The
// reserve is after the end of the file, so no reader and no start reads it.

// checkpointRoom is the room kept for checkpoints, in bytes: about forty of them.
const checkpointRoom = 16 << 10

// extent is the room that the disk keeps for a file.
type extent struct {
	end    int64 // in bytes from the start of the file; the size or less if nothing is kept
	cannot bool  // no room can be kept for this file
}

// keep allocates room for need bytes after size, or for step more if that is available, so that it is rarely called. It
// fails only if there is no room for need. On a file system that cannot allocate, the write itself fails instead.
func (l *Log) keep(e *extent, f File, size, need, step int64) error {
	if l.opt.ReserveBytes == 0 || e.cannot || size+need <= e.end {
		return nil
	}
	err := f.Allocate(size, need+step)
	if step > 0 && noRoom(err) {
		// Some file systems, such as ext4, keep what they allocated when they run out of room, so a missing step is no
		// failure.
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

// noRoom reports whether the disk has no room for the request, and may have room for less.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// Kept returns the room in bytes that the disk keeps after the end of the journal, which FlushFromReserve can use. Only the
// owner may call it.
func (l *Log) Kept() int64 {
	if l.full {
		return 0
	}
	return max(0, l.room.end-l.size)
}

// gaveBack records that the file was cut to size.
func (e *extent) gaveBack(size int64) { e.end = min(e.end, size) }

// keepReserve allocates at a start what is available, for the entries and for the checkpoint at the end. On a full disk,
// the room that the previous process kept is still allocated.
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

// makeRoom prepares the segment for the appended entries, and starts another one if it would be too long. It does not use
// the reserve.
func (l *Log) makeRoom() error {
	reserve, need := l.opt.ReserveBytes, int64(len(l.buf))
	if l.full || l.size > 0 && l.size+need > l.opt.SegmentBytes {
		err := l.rotateInFlush(need+reserve, reserve)
		if err == nil || l.full || l.stopCause() != nil || noRoom(err) || isDamage(err) {
			return err
		}
		// Another segment cannot be created, for example because no descriptor is left: this one is used until it can.
		l.late(err)
	}
	return l.keep(&l.room, l.seg, l.size, need+reserve, reserve)
}

// rotateInFlush rotates for an owner that did not call Rotate in time, and signs the end of the old segment.
func (l *Log) rotateInFlush(need, step int64) error {
	if err := l.beginSegment(need, step); err != nil {
		return err
	}
	// Trouble has reported an error that does not stop the log: the first prev of the next segment protects the end of the
	// old one.
	if err := l.checkpointSynced(uint64(l.opt.CheckpointEvery)); err != nil {
		return l.stopCause()
	}
	return nil
}

// useReserve prepares the segment for the appended entries after makeRoom has failed. It starts a segment on a full disk
// only if nothing can be written otherwise.
func (l *Log) useReserve() error {
	need := int64(len(l.buf))
	if l.full {
		return l.rotateInFlush(need, 0)
	}
	return l.keep(&l.room, l.seg, l.size, need, 0)
}
