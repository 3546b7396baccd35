package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// An examiner reads a journal at Open and changes nothing: what it finds to cut is cut by its caller, so that a crash at
// any point of a start leaves what the next start finds the same way.
type examiner struct {
	fsys   FS
	dir    string
	firsts []uint64 // segments
	proofs proofs

	head    Head  // end of the good chain
	size    int64 // good bytes of the last segment
	vouched int64 // how many of them a proof vouches for: those were synced, the others may not have been

	lastCheck    Checkpoint
	lastCheckAt  int64 // where its line begins
	checkpointed int64 // good bytes of the checkpoints file
	tornLine     bool  // what is cut is the beginning of the next entry's line

	rec Recovery
}

// examine applies the rule of the package comment ("Open accepts no damage in silence").
func examine(fsys FS, dir string) (*examiner, error) {
	x := &examiner{fsys: fsys, dir: dir}
	// What vouches is read first: the segments are held against it line by line, in one pass.
	if err := x.readMark(); err != nil {
		return nil, err
	}
	if err := x.readCheckpoints(); err != nil {
		return nil, err
	}
	x.proofs.sort()
	var err error
	if x.firsts, err = listSegments(fsys, dir); err != nil {
		return nil, err
	}
	if err := x.readSegments(); err != nil {
		return nil, err
	}
	// A torn write was never synced, and a proof is of nothing else. So whatever the reason for which the chain ends here, a
	// proof beyond it says that something was lost that had been promised. A last line that is torn, and nothing else, is
	// cut all the same (PROTOCOL 7), and its loss is told; what a signature vouches for is given up by nobody but a human.
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

// readMark takes a mark that cannot be read for none: it is a lower bound, and losing it loses no entry.
func (x *examiner) readMark() error {
	f, err := x.fsys.Open(filepath.Join(x.dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read head mark: %w", err)
	}
	h, note, err := readMark(f)
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

// readCheckpoints verifies the last signature only: it is the one that stands for all before it. A checkpoint that is
// damaged stops the start, unlike a head mark: nothing that happens to a machine by itself does that to a synced line.
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

// readSegments follows the chain from segment to segment: through the last in full, over the older ones from edge to edge.
func (x *examiner) readSegments() error {
	n := len(x.firsts)
	if n == 0 {
		return nil
	}
	if x.firsts[0] != 1 {
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
			// The power went right after a rotation, or in the first write after it.
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

// missing is the error of a chain that ends before a proof.
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
