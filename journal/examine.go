package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
)

// An examiner reads a journal at Open and changes nothing. Its caller makes the cuts, so a start that is interrupted leaves
// a journal that the next start examines with the same result.
type examiner struct {
	fsys   FS
	dir    string
	firsts []uint64 // segments, without those that an anchor replaces
	anchor *Anchor  // nil if nothing was archived
	edited redactions
	lost   string // what is wrong with the file of redactions, if they were read from the entries
	proofs proofs

	head    Head  // end of the good chain
	size    int64 // good bytes of the last segment
	vouched int64 // how many of them a proof covers: those were synced, the others may not have been

	lastCheck    Checkpoint
	lastCheckAt  int64 // offset of its line
	checkpointed int64 // good bytes of the checkpoints file
	tornLine     bool  // what is cut is the beginning of the next entry's line

	rec Recovery
}

// examine applies the rule of the package comment ("Open accepts no damage silently").
func examine(fsys FS, dir string) (*examiner, error) {
	x := &examiner{fsys: fsys, dir: dir}
	// The proofs are read first, so that one pass over the segments checks each line against them.
	if err := x.readMark(); err != nil {
		return nil, err
	}
	if err := x.readCheckpoints(); err != nil {
		return nil, err
	}
	x.proofs.sort()
	var err error
	if x.edited, x.lost, err = loadRedactions(fsys, dir); err != nil {
		return nil, err
	}
	if x.firsts, err = listSegments(fsys, dir); err != nil {
		return nil, err
	}
	if err := x.readAnchor(); err != nil {
		return nil, err
	}
	if err := x.readSegments(); err != nil {
		return nil, err
	}
	// A torn write was never synced, and proofs exist only for synced entries. So a proof after the end of the chain means
	// that acknowledged entries were lost, whatever ended the chain. A torn last line alone is still cut (PROTOCOL 7) and
	// reported, but only a person gives up what a signature covers.
	if p := x.proofs.beyond(x.head.Seq); p != nil {
		if !x.tornLine || p.source != fromMark || p.Seq != x.head.Seq+1 {
			return nil, x.missing(p)
		}
		x.rec.Cut.Answered = true
	}
	x.rec.Entries = x.head.Seq
	x.rec.Head = x.head
	x.rec.Segments = len(x.firsts)
	x.rec.Vouched = x.proofs.good
	return x, nil
}

// readAnchor starts the chain after the archived entries. Segments before them may still exist after an interrupted
// archiving; they are not needed.
func (x *examiner) readAnchor() (err error) {
	if x.anchor, err = ReadAnchor(x.fsys, x.dir); x.anchor == nil {
		return err
	}
	x.head, x.rec.Anchor = x.anchor.Head, x.anchor
	x.firsts = slices.DeleteFunc(x.firsts, func(first uint64) bool { return first <= x.anchor.Seq })
	if len(x.firsts) == 0 {
		return &DamageError{
			File: segmentPath(x.dir, x.anchor.Seq+1), Seq: x.anchor.Seq + 1, Remedy: remedySegment,
			Reason: "the segment that follows what is archived is missing",
		}
	}
	if p := x.proofs.check(x.head); p != nil {
		return anchorDamage(x.dir, anchorName, errors.New(x.proofs.againstReason(p)))
	}
	x.proofs.good = max(x.proofs.good, x.head.Seq)
	return nil
}

// readMark ignores an invalid mark: it is a lower bound, and losing it loses no entry.
func (x *examiner) readMark() error {
	f, err := x.fsys.Open(filepath.Join(x.dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read head mark: %w", err)
	}
	h, note, err := decodeMark(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if note != "" {
		x.rec.Notes = append(x.rec.Notes, note)
	}
	if h.Seq > 0 {
		x.proofs.add(proof{Head: h, source: fromMark})
	}
	return nil
}

// readCheckpoints verifies the last signature only, since it covers all earlier entries. Unlike a
// damaged head mark, a damaged checkpoint stops the start: no crash damages a synced line.
func (x *examiner) readCheckpoints() (err error) {
	r, err := openCheckpoints(x.fsys, x.dir)
	if r == nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		cp, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		x.lastCheck, x.lastCheckAt = cp, x.checkpointed
		x.proofs.add(proof{Head: cp.Head, line: r.lines.line})
		x.checkpointed = r.lines.off
	}
	x.rec.CheckpointCut = r.torn
	if x.lastCheck.Seq == 0 {
		return nil
	}
	if err := x.lastCheck.Verify(); err != nil {
		return r.damage(x.lastCheckAt, x.lastCheck.Seq, err.Error())
	}
	return nil
}

// readSegments checks the chain across segments: all lines of the last one, and the first and last line of each older one.
func (x *examiner) readSegments() error {
	n := len(x.firsts)
	if n == 0 {
		return nil
	}
	if x.anchor == nil && x.firsts[0] != 1 {
		return &DamageError{
			File: segmentPath(x.dir, 1), Seq: 1, Remedy: remedySegment,
			Reason: fmt.Sprintf("the segments that hold entries 1 to %d are missing", x.firsts[0]-1),
		}
	}
	whole := n - 1 // the first segment that is read in full
	if n > 1 {
		filled, err := x.hasEntry(x.firsts[n-1])
		if err != nil {
			return err
		}
		if !filled {
			// The power cut was right after a rotation, or in the first write after it.
			whole--
		}
	}
	for i, first := range x.firsts {
		if first != x.head.Seq+1 {
			return &DamageError{
				File: segmentPath(x.dir, first), Line: 1, Seq: first, Remedy: remedySegment,
				Reason: fmt.Sprintf("the segment before it ends with entry %d", x.head.Seq),
			}
		}
		read := x.readEdges
		if i >= whole {
			read = x.readWhole
		}
		if err := read(first, i == n-1); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the error for a chain that ends before a proof.
func (x *examiner) missing(p *proof) *DamageError {
	e := &DamageError{
		File: segmentPath(x.dir, x.head.Seq+1), Seq: x.head.Seq + 1,
		Reason: missingReason(p), Remedy: remedyLost,
	}
	if n := len(x.firsts); n > 0 {
		e.File = segmentPath(x.dir, x.firsts[n-1])
		e.Offset = x.size
	}
	return e
}

// withSegment runs read over an open segment and closes it.
func (x *examiner) withSegment(first uint64, read func(f File, path string) error) error {
	path := segmentPath(x.dir, first)
	f, err := x.fsys.Open(path)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	return errors.Join(read(f, path), f.Close())
}

// hasEntry reports whether a segment begins with a whole entry. If not, the chain ends in the
// previous segment.
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

// readWhole checks the chain through a segment, from x.head on. The last segment may end in a torn write.
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
				// Everything after a hole is cut, also whole lines: no fsync followed the flushes that wrote them,
				// otherwise there would be no hole.
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
			next := Head{Seq: rec.Seq}
			next.Hash, _ = x.edited.chained(rec.Seq, hashLine(line))
			if p := x.proofs.check(next); p != nil {
				return x.fault(path, lines.line, x.proofs.againstReason(p))
			}
			x.head, x.size = next, lines.off
			// The line is good, and the last one so far that a proof covers.
			if rec.Seq == x.proofs.good {
				x.vouched = x.size
			}
		}
	})
}

// fault returns the error for the line after the good ones.
func (x *examiner) fault(path string, line int64, reason string) *DamageError {
	return &DamageError{
		File: path, Line: line, Offset: x.size, Seq: x.head.Seq + 1,
		Reason: reason, Remedy: remedySegment,
	}
}

// cut records the bytes that a torn write left after the good ones of a segment.
func (x *examiner) cut(path string, size int64) error {
	if size > x.size {
		x.rec.Cut = &Cut{File: path, Offset: x.size, Bytes: size - x.size, After: x.head.Seq}
	}
	return nil
}

// readEdges checks the first and the last line of an older segment, from x.head on, and makes the
// last one the end of the chain. The lines between were synced before the next segment was made, so
// no crash has damaged them.
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
		// The last line is found from the end, so its number is unknown, and its entry until it is read.
		at.Line, at.Seq = 0, 0
		if line, at.Offset, err = lastLine(f); err != nil {
			return fmt.Errorf("read segment: %w", err)
		}
		// The name of the next segment will show whether all entries between are there.
		if err := ParseLine(line, &rec); err != nil || rec.Seq < first {
			at.Reason = "the last line of the segment is not one of its entries"
			return &at
		}
		at.Seq = rec.Seq
		x.head.Seq = rec.Seq
		x.head.Hash, _ = x.edited.chained(rec.Seq, hashLine(line))
		if p := x.proofs.check(x.head); p != nil {
			at.Reason = x.proofs.againstReason(p)
			return &at
		}
		return nil
	})
}

// lastLine returns a file's last line without its '
// ', and its offset. It returns nothing if the file does not end with a line end.
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
