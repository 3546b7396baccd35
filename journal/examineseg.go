package journal

import (
	"errors"
	"fmt"
	"io"
)

// withSegment runs read over an open segment and closes it.
func (x *examiner) withSegment(first uint64, read func(f File, path string) error) error {
	path := segmentPath(x.dir, first)
	f, err := x.fsys.Open(path)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	return errors.Join(read(f, path), f.Close())
}

// hasEntry says whether a segment begins with a whole entry. Where it does not, the chain's end lies in the one before.
func (x *examiner) hasEntry(first uint64) (ok bool, err error) {
	err = x.withSegment(first, func(f File, _ string) error {
		line, err := newLineReader(f, 0).next()
		ok = err == nil && ParseLine(line, &Record{}) == nil
		if errors.Is(err, io.EOF) || errors.Is(err, errLongLine) {
			return nil
		}
		return err
	})
	return ok, err
}

// readWhole follows the chain through a segment, from x.head on. The last segment may end in a torn write.
func (x *examiner) readWhole(first uint64, last bool) error {
	return x.withSegment(first, func(f File, path string) error {
		size, err := f.Size()
		if err != nil {
			return fmt.Errorf("read segment: %w", err)
		}
		x.size, x.vouched = 0, 0
		var rec Record
		for lines := newLineReader(f, 0); ; {
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				if lines.rest() > 0 && !last {
					return x.fault(path, lines.line+1, unfinished)
				}
				x.tornLine = beginsEntry(lines.peek(), x.head)
				return x.cut(path, size)
			}
			if err == nil {
				err = ParseLine(line, &rec)
			}
			if isFault(err) {
				// Everything from a hole on goes, whole lines after it too: they were written by flushes that no fsync
				// followed, or there would be no hole.
				if last && tornWrite(line) {
					return x.cut(path, size)
				}
				return x.fault(path, lines.line, err.Error())
			}
			if err != nil {
				return fmt.Errorf("read segment: %w", err)
			}
			if reason := chainFault(x.head, &rec); reason != "" {
				return x.fault(path, lines.line, reason)
			}
			next := Head{Seq: rec.Seq, Hash: hashLine(line)}
			if p := x.proofs.check(next); p != nil {
				return x.fault(path, lines.line, x.proofs.againstReason(p))
			}
			x.head, x.size = next, lines.off
			// The line was found good and is the last that a proof was about so far.
			if rec.Seq == x.proofs.good {
				x.vouched = x.size
			}
		}
	})
}

// fault is about the line after the good ones.
func (x *examiner) fault(path string, line int64, reason string) *DamageError {
	return &DamageError{
		File: path, Line: line, Offset: x.size, Seq: x.head.Seq + 1,
		Reason: reason, Remedy: remedySegment,
	}
}

// cut notes what a torn write left after the good bytes of a segment.
func (x *examiner) cut(path string, size int64) error {
	if size > x.size {
		x.rec.Cut = &Cut{File: path, Offset: x.size, Bytes: size - x.size, After: x.head.Seq}
	}
	return nil
}

// readEdges checks the first and the last line of an older segment, from x.head on, and takes the last for the end of the
// chain. What lies between was synced before the next segment was made, so no crash has touched it.
func (x *examiner) readEdges(first uint64, _ bool) error {
	return x.withSegment(first, func(f File, path string) error {
		var rec Record
		at := DamageError{File: path, Line: 1, Seq: first, Remedy: remedySegment}
		line, err := newLineReader(f, 0).next()
		if err == nil {
			err = ParseLine(line, &rec)
		}
		if errors.Is(err, io.EOF) || isFault(err) {
			at.Reason = errLayout.Error()
			return &at
		}
		if err != nil {
			return fmt.Errorf("read segment: %w", err)
		}
		if at.Reason = chainFault(x.head, &rec); at.Reason != "" {
			return &at
		}
		// The last line is found from the end, so its number and, until it is read, its entry are unknown.
		at.Line, at.Seq = 0, 0
		if line, at.Offset, err = lastLine(f); err != nil {
			return fmt.Errorf("read segment: %w", err)
		}
		// That all entries from the first on are there is not known yet: the name of the next segment will tell.
		if err := ParseLine(line, &rec); err != nil || rec.Seq < first {
			at.Reason = "the last line of the segment is not one of its entries"
			return &at
		}
		at.Seq = rec.Seq
		x.head = Head{Seq: rec.Seq, Hash: hashLine(line)}
		if p := x.proofs.check(x.head); p != nil {
			at.Reason = x.proofs.againstReason(p)
			return &at
		}
		return nil
	})
}

// lastLine returns a file's last line without its '\n', and where it begins; nothing where the file does not end with a
// line end.
func lastLine(f File) ([]byte, int64, error) {
	size, err := f.Size()
	if err != nil {
		return nil, 0, err
	}
	for want := int64(firstRead); ; want *= 4 {
		want = min(want, size)
		buf := make([]byte, want)
		if n, err := f.ReadAt(buf, size-want); int64(n) < want {
			return nil, 0, err
		}
		start, ok := lastLineStart(buf, want == size)
		if ok {
			return buf[start:max(start, len(buf)-1)], size - want + int64(start), nil
		}
		if want > MaxLine {
			return nil, size - want, nil
		}
	}
}
