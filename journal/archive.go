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

	"github.com/promptware-os/pwos/schema/fault"
)

// An Archive moves complete segments out of a journal, in these steps. No Rewrite may run at the same time.
//
//	PlanArchive   choose the segments
//	Copy          the other directory has them, durable and verified
//	WriteAnchor   the journal does not need them any more
//	Remove        the journal does not have them any more
//
// If the process ends in between, each entry is in at least one of the directories, and the next start removes the segments
// that the anchor replaces.
type Archive struct {
	Head           // the last entry that is moved
	Segments int   // how many
	Bytes    int64 // of them

	fsys   FS
	dir    string
	firsts []uint64
	before *Anchor // the anchor of what was archived earlier
}

// PlanArchive chooses the complete segments of entries before seq, or, if seq is 0, of entries before a time in Unix
// milliseconds. It returns nil if there are none.
func PlanArchive(fsys FS, dir string, seq uint64, ms int64) (*Archive, error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	a := &Archive{fsys: fsys, dir: dir}
	var err error
	if a.before, err = ReadAnchor(fsys, dir); err != nil {
		return nil, err
	}
	firsts, err := listSegments(fsys, dir)
	if err != nil {
		return nil, err
	}
	edited, err := readRedactions(fsys, dir)
	if err != nil {
		return nil, err
	}
	if a.before != nil {
		firsts = slices.DeleteFunc(firsts, func(first uint64) bool { return first <= a.before.Seq })
	}
	for i := 0; i < len(firsts)-1; i++ {
		last, size, err := a.end(firsts[i])
		if err != nil {
			return nil, err
		}
		if seq > 0 && last.Seq >= seq || seq == 0 && last.Time >= ms {
			break
		}
		a.Seq = last.Seq
		a.Hash, _ = edited.chained(last.Seq, last.Hash)
		a.Bytes += size
		a.firsts = append(a.firsts, firsts[i])
	}
	a.Segments = len(a.firsts)
	if a.Segments == 0 {
		return nil, nil
	}
	return a, nil
}

// First returns the first entry that is moved.
func (a *Archive) First() uint64 { return a.firsts[0] }

// Running returns the number and time of the first entry of the segment that is being written; both are zero if the segment
// is empty.
func Running(fsys FS, dir string) (rec Record, err error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	firsts, err := listSegments(fsys, dir)
	if err != nil || len(firsts) == 0 {
		return rec, err
	}
	reader := NewReader(fsys, dir, ReaderOptions{From: firsts[len(firsts)-1]})
	defer func() { err = errors.Join(err, reader.Close()) }()
	found, err := reader.Next(context.Background())
	if errors.Is(err, io.EOF) {
		return rec, nil
	}
	if err != nil {
		return rec, err
	}
	rec.Seq, rec.Time = found.Seq, found.Time
	return rec, nil
}

// end returns the last entry of a segment, with the hash of its line, and the segment's size in bytes.
func (a *Archive) end(first uint64) (rec Record, size int64, err error) {
	f, err := a.fsys.Open(segmentPath(a.dir, first))
	if err != nil {
		return rec, 0, fmt.Errorf("open segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size, err = f.Size(); err != nil {
		return rec, 0, err
	}
	line, off, err := lastLine(f)
	if err != nil {
		return rec, 0, fmt.Errorf("read segment: %w", err)
	}
	if ParseLine(line, &rec) != nil {
		return rec, 0, &DamageError{File: segmentPath(a.dir, first), Offset: off, Reason: unfinished, Remedy: remedySegment}
	}
	rec.Hash = hashLine(line)
	return rec, size, nil
}

// Copy copies the segments into to, with their checkpoints and redactions, and verifies the result. It creates to if it is
// missing. to may contain earlier archives of this journal, and nothing else.
func (a *Archive) Copy(ctx context.Context, to string) error {
	if err := a.fsys.Mkdir(to); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make archive: %w", err)
	}
	locked, err := a.fsys.Lock(to)
	if err != nil {
		return fmt.Errorf("lock archive: %w", err)
	}
	err = a.copyInto(ctx, to)
	return errors.Join(err, locked.Close())
}

func (a *Archive) copyInto(ctx context.Context, to string) error {
	there, err := a.archived(to)
	if err != nil {
		return err
	}
	for _, first := range a.firsts {
		if err := a.copyFile(ctx, segmentPath(a.dir, first), to); err != nil {
			return err
		}
	}
	if a.before != nil && !there {
		if err := replace(a.fsys, to, baseName, writeAll(append(a.before.appendLine(nil), '\n'))); err != nil {
			return err
		}
	}
	if err := a.copySigned(to); err != nil {
		return err
	}
	if err := errors.Join(a.fsys.SyncDir(to), a.fsys.SyncDir(filepath.Dir(to))); err != nil {
		return fmt.Errorf("sync archive: %w", err)
	}
	report, err := Verify(ctx, a.fsys, to, VerifyOptions{})
	switch {
	case err != nil:
		return err
	case !report.OK():
		return fmt.Errorf("verify archive: %w", report.Findings[0])
	case report.Head != a.Head:
		return foreignArchive(to, "it does not end with entry %d, as what was to be archived does", a.Seq)
	}
	return nil
}

func foreignArchive(to, format string, args ...any) error {
	return fault.JournalForeign.New("%s cannot be the archive: "+format+"; give a new directory", append([]any{to}, args...)...)
}

// archived reports whether to has the segments that were archived earlier. It returns an error if to has other files.
func (a *Archive) archived(to string) (there bool, err error) {
	if same, err := a.sameDir(to); err != nil || same {
		return false, errors.Join(err, foreignArchive(to, "it is the journal itself"))
	}
	firsts, err := listSegments(a.fsys, to)
	if err != nil {
		return false, err
	}
	var older []uint64
	for _, first := range firsts {
		switch {
		case a.before != nil && first <= a.before.Seq:
			older = append(older, first)
		case !slices.Contains(a.firsts, first): // otherwise it is from an interrupted attempt
			return false, foreignArchive(to, "it has a segment of entry %d", first)
		}
	}
	if len(older) == 0 {
		return false, nil
	}
	last, _, err := (&Archive{fsys: a.fsys, dir: to}).end(older[len(older)-1])
	if err != nil {
		return false, err
	}
	edited, err := readRedactions(a.fsys, to)
	if err != nil {
		return false, err
	}
	if hash, _ := edited.chained(last.Seq, last.Hash); (Head{last.Seq, hash}) != a.before.Head {
		return false, foreignArchive(to, "it is of another journal, or ends before entry %d", a.before.Seq)
	}
	return true, nil
}

// sameDir reports whether to is the journal's directory.
func (a *Archive) sameDir(to string) (bool, error) {
	here, err := filepath.Abs(a.dir)
	if err != nil {
		return false, err
	}
	there, err := filepath.Abs(to)
	return here == there, err
}

// copyFile copies a file and syncs it, but not its name.
func (a *Archive) copyFile(ctx context.Context, path, to string) (err error) {
	f, err := a.fsys.Open(path)
	if err != nil {
		return fmt.Errorf("copy segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("copy segment: %w", err)
	}
	return replace(a.fsys, to, filepath.Base(path), func(out File) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{io.NewOffsetWriter(out, 0)}, cancelled{ctx, io.NewSectionReader(f, 0, size)}, make([]byte, readSize))
		return err
	})
}

// copySigned writes the checkpoints and redactions of entries that are archived.
func (a *Archive) copySigned(to string) error {
	checks, err := readSmall(a.fsys, a.dir, checkpointsName)
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(checks) {
		if cp, err := ParseCheckpoint(bytes.TrimSuffix(line, []byte("\n"))); err == nil && cp.Seq <= a.Seq {
			kept = append(kept, line...)
		}
	}
	if err := replace(a.fsys, to, checkpointsName, writeAll(kept)); err != nil {
		return err
	}
	edited, err := readSmall(a.fsys, a.dir, redactionsName)
	if err != nil || edited == nil {
		return err
	}
	kept = nil
	for line := range bytes.Lines(edited) {
		if r, err := parseRedaction(bytes.TrimSuffix(line, []byte("\n"))); err == nil && r.Seq <= a.Seq {
			kept = append(kept, line...)
		}
	}
	return replace(a.fsys, to, redactionsName, writeAll(kept))
}

// Remove removes the segments from the journal. The anchor must be there.
func (a *Archive) Remove() error {
	for _, first := range a.firsts {
		if err := removeIfThere(a.fsys, segmentPath(a.dir, first)); err != nil {
			return fmt.Errorf("remove archived segment: %w", err)
		}
	}
	if err := a.fsys.SyncDir(a.dir); err != nil {
		return fmt.Errorf("sync journal directory: %w", err)
	}
	return nil
}
