package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
)

// asidePrefix is the prefix of the directories that SetAside creates in the journal's directory.
const asidePrefix = "diverged-"

// SetAside moves all entries after one out of a journal without a writer. It returns the directory that has them:
// diverged-SEQ-HASH, named after the first of them, in the journal's directory; "" if there are none. The directory has
// whole segments, which may begin with entries that stay, and the checkpoints. Nothing is removed before it is durable
// there.
//
// If the process ends in between, the journal still opens, and ends with the given entry or a later one that it had. The
// next SetAside continues, in another directory.
func SetAside(ctx context.Context, fsys FS, dir string, after Head) (aside string, err error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	locked, err := fsys.Lock(dir)
	if err != nil {
		return "", fmt.Errorf("set entries aside: %w", err)
	}
	defer func() { err = errors.Join(err, locked.Close()) }()
	s := &divergence{fsys: fsys, dir: dir, after: after}
	if err := s.plan(ctx); err != nil || s.first.Seq == 0 {
		return "", err
	}
	to, err := s.makeDir()
	if err != nil {
		return "", err
	}
	if err := s.copy(ctx, to); err != nil {
		return "", err
	}
	return to, s.cut()
}

type divergence struct {
	fsys  FS
	dir   string
	after Head
	first Head // the first entry that is set aside; zero: none

	whole []uint64 // segments that have only such entries
	split uint64   // the segment that also has earlier entries; 0: none
	size  int64    // bytes that stay in that segment
}

// plan finds the entries to set aside.
func (s *divergence) plan(ctx context.Context) error {
	edited, err := readRedactions(s.fsys, s.dir)
	if err != nil {
		return err
	}
	if last := edited.latest(); last != nil && last.By > s.after.Seq {
		return fmt.Errorf("set entries aside: the line of entry %d was rewritten, as entry %d says, which is one of them", last.Seq, last.By)
	}
	r := NewReader(s.fsys, s.dir, ReaderOptions{From: max(1, s.after.Seq)})
	defer r.Close() // read only
	if s.after.Seq > 0 {
		rec, err := r.Next(ctx)
		if err != nil {
			return fmt.Errorf("set entries aside: %w", err)
		}
		if rec.Seq != s.after.Seq || rec.Hash != s.after.Hash {
			return fmt.Errorf("set entries aside: the journal has no entry %d with the hash %s", s.after.Seq, s.after.Hash)
		}
		s.split, s.size = rec.Segment, rec.Offset+int64(len(rec.Line))+1
	}
	rec, err := r.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("set entries aside: %w", err)
	}
	s.first = Head{rec.Seq, rec.Hash}
	if rec.Segment != s.split {
		s.split = 0
	}
	firsts, err := listSegments(s.fsys, s.dir)
	if err != nil {
		return err
	}
	s.whole = slices.DeleteFunc(firsts, func(first uint64) bool { return first <= s.after.Seq })
	return nil
}

// makeDir creates a directory with an unused name.
func (s *divergence) makeDir() (string, error) {
	name := filepath.Join(s.dir, fmt.Sprintf("%s%d-%s", asidePrefix, s.first.Seq, s.first.Hash.String()[:8]))
	for i := 1; ; i++ {
		path := name
		if i > 1 {
			path = fmt.Sprintf("%s-%d", name, i)
		}
		err := s.fsys.Mkdir(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("set entries aside: %w", err)
		}
	}
}

// copy copies the segments, checkpoints and redactions durably.
func (s *divergence) copy(ctx context.Context, to string) error {
	from := &Archive{fsys: s.fsys, dir: s.dir}
	segments := s.whole
	if s.split != 0 {
		segments = append([]uint64{s.split}, segments...)
	}
	for _, first := range segments {
		if err := from.copyFile(ctx, segmentPath(s.dir, first), to); err != nil {
			return err
		}
	}
	for _, name := range []string{checkpointsName, redactionsName} {
		text, err := readSmall(s.fsys, s.dir, name)
		if err != nil {
			return err
		}
		if text == nil {
			continue
		}
		if err := replace(s.fsys, to, name, writeAll(text)); err != nil {
			return err
		}
	}
	if err := errors.Join(s.fsys.SyncDir(to), s.fsys.SyncDir(s.dir)); err != nil {
		return fmt.Errorf("set entries aside: %w", err)
	}
	return nil
}

// cut removes the entries from the journal: first the proofs of them, then the segments from the last to the first, so that
// the rest is a valid journal at any moment.
func (s *divergence) cut() error {
	if err := s.cutProofs(); err != nil {
		return err
	}
	for _, first := range slices.Backward(s.whole) {
		if err := removeIfThere(s.fsys, segmentPath(s.dir, first)); err != nil {
			return fmt.Errorf("cut entries off: %w", err)
		}
		if err := s.fsys.SyncDir(s.dir); err != nil {
			return fmt.Errorf("cut entries off: %w", err)
		}
	}
	if s.split == 0 {
		return nil
	}
	f, err := s.fsys.Create(segmentPath(s.dir, s.split))
	if err != nil {
		return fmt.Errorf("cut entries off: %w", err)
	}
	if err = f.Truncate(s.size); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cut entries off: %w", err)
	}
	return nil
}

// cutProofs removes the checkpoints of the entries, and moves the head mark back.
func (s *divergence) cutProofs() error {
	text, err := readSmall(s.fsys, s.dir, checkpointsName)
	if err != nil {
		return err
	}
	if text != nil {
		var kept []byte
		for line := range bytes.Lines(text) {
			if c, err := ParseCheckpoint(bytes.TrimSuffix(line, []byte("\n"))); err == nil && c.Seq <= s.after.Seq {
				kept = append(kept, line...)
			}
		}
		if err := replace(s.fsys, s.dir, checkpointsName, writeAll(kept)); err != nil {
			return err
		}
	}
	var mark []byte
	if s.after.Seq > 0 {
		mark = appendMark(nil, s.after)
	}
	return replace(s.fsys, s.dir, markName, writeAll(mark))
}
