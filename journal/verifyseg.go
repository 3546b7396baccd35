package journal

import (
	"errors"
	"fmt"
	"io"
)

// contextEvery is how many lines are read between two looks at the context.
const contextEvery = 4096

// readSegments lists the segments once: one that a kernel makes meanwhile is not looked at, and the one before it counts
// as the last.
func (v *verifier) readSegments() error {
	v.proofs.sort()
	firsts, err := listSegments(v.fsys, v.dir)
	if err != nil {
		return err
	}
	v.path = v.dir // for what is found where there is no segment at all
	for i, first := range firsts {
		if err := v.readSegment(first, i == len(firsts)-1); err != nil {
			return err
		}
	}
	v.report.Segments = len(firsts)
	return nil
}

// readSegment follows the chain through one segment, as a start does through the last one, but does not end at a fault.
func (v *verifier) readSegment(first uint64, last bool) (err error) {
	v.path, v.size = segmentPath(v.dir, first), 0
	f, err := v.fsys.Open(v.path)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if first != v.head.Seq+1 {
		v.report.find(&DamageError{
			File: v.path, Seq: first,
			Reason: fmt.Sprintf("the segment is named after entry %d where entry %d follows", first, v.head.Seq+1),
		})
	}
	var rec Record
	for lines := newLineReader(f, 0); ; {
		if lines.line%contextEvery == 0 && v.ctx.Err() != nil {
			return v.ctx.Err()
		}
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			v.tail(lines.rest(), lines.line+1, last)
			return nil
		}
		if err == nil {
			err = ParseLine(line, &rec)
		}
		// The next start would cut from here on.
		if isFault(err) && last && tornWrite(line) {
			size, err := f.Size()
			v.tail(size-v.size, lines.line, last)
			return err
		}
		if err != nil && !isFault(err) {
			return fmt.Errorf("read segment: %w", err)
		}
		v.judge(line, lines.line, &rec, err)
		// Where an endless line ends is not known, so what follows it cannot be told from it.
		if errors.Is(err, errLongLine) {
			return nil
		}
		v.size = lines.off
		v.report.Bytes += int64(len(line)) + 1
	}
}

// judge takes a line into the chain, with what is wrong with it. Its hash is taken over whatever it says, and its seq where
// it has one, so that the next line is judged against what stands there and not against what should.
func (v *verifier) judge(line []byte, number int64, rec *Record, fault error) {
	next := Head{Seq: v.head.Seq + 1, Hash: hashLine(line)}
	var reason string
	if fault != nil {
		reason = fault.Error()
	} else {
		v.report.Entries++
		next.Seq = rec.Seq
		reason = chainFault(v.head, rec)
		v.note(rec, next)
	}
	// The proofs move on in any case. Of a line that is wrong in itself, what a proof says is no news.
	if p := v.proofs.check(next); p != nil && reason == "" {
		reason = v.proofs.againstReason(p)
	}
	if reason != "" {
		v.find(number, next.Seq, reason)
	}
	v.head = next
}

// tail judges the bytes after the last whole line of a segment. In the last one they are a write that never finished, or
// one that is under way: reported, and no fault.
func (v *verifier) tail(torn, number int64, last bool) {
	switch {
	case torn == 0:
	case last:
		v.report.TornFile, v.report.TornBytes = v.path, torn
	default:
		v.find(number, v.head.Seq+1, unfinished)
	}
}

// find reports a fault of the line after the last one read.
func (v *verifier) find(number int64, seq uint64, reason string) {
	v.report.find(&DamageError{File: v.path, Line: number, Offset: v.size, Seq: seq, Reason: reason})
}
