package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// checkpointReader walks a checkpoints file. Each line was synced before the next was begun, so a power cut can have torn
// the last one only.
type checkpointReader struct {
	path  string
	lines *lineReader
	close func() error
	last  uint64 // seq of the last good checkpoint
	torn  int64  // bytes of a torn last line, known after io.EOF
	over  bool   // nothing can be read after a line of endless length
}

// openCheckpoints returns nil where dir has no such file.
func openCheckpoints(fsys FS, dir string) (*checkpointReader, error) {
	path := filepath.Join(dir, checkpointsName)
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return &checkpointReader{path: path, lines: newLineReader(f, 0), close: f.Close}, nil
}

// next returns the next checkpoint, its signature not checked, or io.EOF. A *DamageError stands for one line; reading may
// go on after it.
func (r *checkpointReader) next() (Checkpoint, error) {
	if r.over {
		return Checkpoint{}, io.EOF
	}
	off := r.lines.off
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		r.torn += r.lines.rest()
		return Checkpoint{}, io.EOF
	}
	if errors.Is(err, errLongLine) {
		r.over = true
		return Checkpoint{}, r.damage(off, 0, err.Error())
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoints: %w", err)
	}
	// A hole with a line end after it: the line was longer than a sector, and its last one was written first.
	cp, err := ParseCheckpoint(line)
	if err != nil && bytes.IndexByte(line, 0) >= 0 && r.atEnd() {
		r.torn = int64(len(line)) + 1
		return Checkpoint{}, io.EOF
	}
	if err != nil {
		return Checkpoint{}, r.damage(off, 0, err.Error())
	}
	if cp.Seq <= r.last {
		return Checkpoint{}, r.damage(off, cp.Seq, fmt.Sprintf("checkpoint of entry %d follows that of entry %d", cp.Seq, r.last))
	}
	r.last = cp.Seq
	return cp, nil
}

// atEnd says whether the line just read was the last thing in the file.
func (r *checkpointReader) atEnd() bool {
	if r.lines.rest() > 0 {
		return false
	}
	return errors.Is(r.lines.fill(), io.EOF)
}

func (r *checkpointReader) damage(off int64, seq uint64, reason string) *DamageError {
	return &DamageError{
		File: r.path, Line: r.lines.line, Offset: off, Seq: seq,
		Reason: reason, Remedy: remedyCheckpoints,
	}
}
