package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// rewrittenSuffix is the suffix of the copy of a segment while the line in it has no redaction yet, or the copy does not
// have the segment's name yet. A start continues from there: see finish.
const rewrittenSuffix = segmentSuffix + ".rewritten"

// ErrOpenSegment says that a line is in the segment that is being written. EndSegment starts another.
var ErrOpenSegment = errors.New("the entry is in the segment that is being written")

// A Rewrite is a copy of a complete segment with another text in one line. The steps are:
//
//	PrepareRewrite   the copy is on disk
//	                 the caller appends the entry that vouches for Old and New, and syncs it
//	Commit           the redaction is on disk, then the copy takes the segment's name
//
// If the process ends in between, a start finds the journal valid: with the old line if no entry vouches for another one,
// otherwise with the new line. One Rewrite runs at a time, and not during an Archive.
type Rewrite struct {
	Seq      uint64
	Old, New Hash // Old is that of the line in the chain

	fsys  FS
	dir   string
	first uint64
}

// PrepareRewrite writes the copy. edit returns the new line of entry seq, without its '
// '; it may change only request and outcome.
func PrepareRewrite(ctx context.Context, fsys FS, dir string, seq uint64, edit func(*Record) ([]byte, error)) (*Rewrite, error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	r := NewReader(fsys, dir, ReaderOptions{From: seq})
	defer r.Close() // read only
	rec, err := r.Next(ctx)
	if err != nil {
		return nil, err
	}
	firsts, err := listSegments(fsys, dir)
	if err != nil {
		return nil, err
	}
	if rec.Segment == firsts[len(firsts)-1] {
		return nil, ErrOpenSegment
	}
	w := &Rewrite{Seq: seq, Old: rec.Hash, fsys: fsys, dir: dir, first: rec.Segment}
	line, err := edit(rec)
	if err != nil {
		return nil, err
	}
	if err := sameEntry(rec, line); err != nil {
		return nil, err
	}
	w.New = hashLine(line)
	return w, w.copy(ctx, r.f, rec.Offset, int64(len(rec.Line)), line)
}

// sameEntry returns an error if a line differs from the record's in more than request and outcome.
func sameEntry(rec *Record, line []byte) error {
	var now Record
	if err := ParseLine(line, &now); err != nil {
		return err
	}
	was := rec.Entry
	was.Request, was.Outcome = now.Request, now.Outcome
	if want := appendLine(nil, rec.Seq, &rec.Prev, &was); !bytes.Equal(want, line) {
		return errLayout
	}
	return nil
}

// copy writes the segment with another line at off, durably.
func (w *Rewrite) copy(ctx context.Context, old File, off, length int64, line []byte) error {
	size, err := old.Size()
	if err != nil {
		return fmt.Errorf("rewrite segment: %w", err)
	}
	err = writeFile(w.fsys, w.path(), func(f File) error {
		out := io.NewOffsetWriter(f, 0)
		for _, part := range []io.Reader{
			io.NewSectionReader(old, 0, off), bytes.NewReader(line), io.NewSectionReader(old, off+length, size-off-length),
		} {
			if _, err := io.CopyBuffer(struct{ io.Writer }{out}, cancelled{ctx, part}, make([]byte, readSize)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = w.fsys.SyncDir(w.dir) // an entry that vouches for the copy must not survive without its name
	}
	if err != nil {
		return errors.Join(fmt.Errorf("rewrite segment: %w", err), w.Discard())
	}
	return nil
}

// cancelled is a reader that fails when its context is done.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func (w *Rewrite) path() string {
	return strings.TrimSuffix(segmentPath(w.dir, w.first), segmentSuffix) + rewrittenSuffix
}

// Discard removes the copy. A start does so too.
func (w *Rewrite) Discard() error { return removeIfThere(w.fsys, w.path()) }

// Commit replaces the segment with the copy. by is the entry that vouches for it, which must be on disk.
func (w *Rewrite) Commit(by uint64, signer Signer, ms int64) (err error) {
	rs, _, err := loadRedactions(w.fsys, w.dir)
	if err != nil {
		return err
	}
	if rs == nil {
		rs = make(redactions)
	}
	r := Redaction{Seq: w.Seq, By: by, Old: w.Old, New: w.New, Time: ms}
	list := slices.DeleteFunc(rs[w.Seq], func(r Redaction) bool { return r.By == by }) // the file may have been rebuilt from the entries
	rs[w.Seq] = append(list, r)
	if err := rs.write(w.fsys, w.dir, signer); err != nil {
		return err
	}
	return w.take()
}

// take renames the copy to the segment's name.
func (w *Rewrite) take() error {
	err := w.fsys.Rename(w.path(), segmentPath(w.dir, w.first))
	if err == nil {
		err = w.fsys.SyncDir(w.dir)
	}
	if err != nil {
		return fmt.Errorf("take rewritten segment: %w", err)
	}
	return nil
}

// finish completes what an interrupted process began. A rewritten segment that an entry vouches for replaces the old one;
// other copies are removed, and so are segments that an anchor replaces, and temporary files. A lost file of redactions is
// rebuilt.
func (l *Log) finish(x *examiner) error {
	names, err := l.opt.FS.ReadDir(l.opt.Dir)
	if err != nil {
		return fmt.Errorf("list journal: %w", err)
	}
	pending := slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, rewrittenSuffix) })
	if err := l.finishRedactions(x, pending); err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		first, segment := segmentFirst(name)
		digits, rewritten := strings.CutSuffix(name, rewrittenSuffix)
		switch {
		case rewritten:
			if first, ok := segmentFirst(digits + segmentSuffix); ok {
				err = l.finishRewrite(x, first)
			}
		case strings.HasSuffix(name, temporary), x.anchor != nil && segment && first <= x.anchor.Seq,
			strings.HasSuffix(name, stateSuffix) && (x.anchor == nil || name != x.anchor.StateName()):
			err = removeIfThere(l.opt.FS, filepath.Join(l.opt.Dir, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finishRedactions writes a lost file, and the redactions of entries that the file lacks if a copy of a segment waits for
// them. It creates an empty file in a new journal, so that its later loss is detected.
func (l *Log) finishRedactions(x *examiner, pending bool) error {
	if l.opt.Signer == nil || x.lost == "" && !pending && x.edited != nil {
		return nil
	}
	if x.lost == "" && pending {
		said, err := redactionsIn(l.opt.FS, l.opt.Dir, x.firsts)
		if err != nil {
			return err
		}
		r := said.latest()
		if last := x.edited.latest(); r == nil || last != nil && last.By >= r.By {
			return nil
		}
		if x.edited == nil {
			x.edited = make(redactions)
		}
		x.edited[r.Seq] = append(x.edited[r.Seq], *r)
	}
	x.edited.through(x.head.Seq)
	if err := x.edited.write(l.opt.FS, l.opt.Dir, l.opt.Signer); err != nil {
		return err
	}
	if last := x.edited.latest(); x.lost != "" && (last != nil || x.lost != missing) {
		x.rec.Notes = append(x.rec.Notes, fmt.Sprintf("the file %s %s: it was written again, of what the entries of the journal say of %d redacted entries",
			redactionsName, x.lost, len(x.edited)))
	}
	return nil
}

// finishRewrite takes the copy of a segment if the copy has the line that the latest redaction names, and the segment does
// not.
func (l *Log) finishRewrite(x *examiner, first uint64) error {
	w := &Rewrite{fsys: l.opt.FS, dir: l.opt.Dir, first: first}
	r := x.edited.latest()
	i := slices.Index(x.firsts, first)
	if r == nil || r.Key == "" || i < 0 || i == len(x.firsts)-1 || r.Seq < first || r.Seq >= x.firsts[i+1] {
		return w.Discard()
	}
	done, err := l.lineIs(segmentPath(l.opt.Dir, first), r)
	if err != nil {
		return err
	}
	made, err := l.lineIs(w.path(), r)
	if err != nil {
		return err
	}
	if done || !made {
		return w.Discard()
	}
	x.rec.Notes = append(x.rec.Notes, fmt.Sprintf("entry %d is redacted now, as entry %d says: that was not finished", r.Seq, r.By))
	return w.take()
}

// lineIs reports whether a file has the new line of a redaction.
func (l *Log) lineIs(path string, r *Redaction) (ok bool, err error) {
	f, err := l.opt.FS.Open(path)
	if err != nil {
		return false, fmt.Errorf("read rewritten segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	off, err := seekEntry(f, r.Seq)
	if err != nil {
		return false, err
	}
	var rec Record
	for lines := newLineReader(f, off); ; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) || isFault(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if ParseLine(line, &rec) != nil || rec.Seq > r.Seq {
			return false, nil
		}
		if rec.Seq == r.Seq {
			return hashLine(line) == r.New, nil
		}
	}
}
