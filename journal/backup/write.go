package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// Source is what to back up.
type Source struct {
	Dir     string // the state directory
	Key     Key    // its host key
	Version string // of the program
	Now     func() time.Time

	// Steps returns files of steps, which stay open until Write returns. It is called when the journal's last entry is known: what the
	// journal says of steps is in them. nil: a backup of the journal.
	Steps func() ([]File, error)
}

// File is a member, up to a size.
type File struct {
	Name string // in the state directory, with slashes
	Size int64
	io.ReaderAt
}

// openFile is a File, and what must be closed after it.
type openFile struct {
	File
	open *os.File
}

// textFile returns a member that is in memory.
func textFile(name string, text []byte) openFile {
	return openFile{File: File{name, int64(len(text)), bytes.NewReader(text)}}
}

// closeAll closes files that were opened for reading.
func closeAll(files []openFile) {
	for i := range files {
		if f := files[i].open; f != nil {
			_ = f.Close() // read only
		}
	}
}

// Write writes a backup of the journal up to the last synced entry, and returns its manifest. It does not call the kernel;
// running reports whether one runs, which holds the journal's lock. If the journal is damaged, the error is a
// *journal.DamageError.
func Write(ctx context.Context, w io.Writer, s Source) (m *Manifest, running bool, err error) {
	dir := filepath.Join(s.Dir, "journal")
	locked, err := journal.OSFS{}.Lock(dir)
	switch {
	case errors.Is(err, journal.ErrLocked):
		running = true
	case err != nil:
		return nil, false, fmt.Errorf("read journal: %w", err)
	default:
		defer func() { err = errors.Join(err, locked.Close()) }()
	}
	m = new(Manifest)
	if err := s.examine(ctx, dir, m); err != nil {
		return nil, running, err
	}
	files, err := collect(ctx, dir, running, m)
	defer func() { closeAll(files) }()
	if err != nil {
		return nil, running, err
	}
	files = append(files, textFile("host_key.pub", []byte(s.Key.Public()+"\n")))
	m.Header = Header{Format: Format, Version: s.Version, Time: s.Now().UnixMilli()}
	if s.Steps != nil {
		more, err := s.Steps()
		if err != nil {
			return nil, running, err
		}
		for _, one := range more {
			files = append(files, openFile{File: one})
		}
		m.Header.Format = FormatSteps
	}
	m.Header.Files = int64(len(files))
	for i := range files {
		m.Header.Bytes += files[i].Size
	}
	return m, running, s.write(ctx, w, files, m)
}

// examine verifies the journal, and sets the identity of its kernel in m.
func (s *Source) examine(ctx context.Context, dir string, m *Manifest) error {
	report, err := journal.Verify(ctx, nil, dir, journal.VerifyOptions{Names: func(r *journal.Record) string {
		if l := journal.LeaderOf(r); l != nil {
			m.Epoch = l.Epoch
			if l.Instance != "" {
				m.Instance = l.Instance
			}
		}
		return ""
	}})
	switch {
	case err != nil:
		return err
	case !report.OK():
		return report.Findings[0]
	}
	return nil
}

// collect opens the files of the journal as they were at one moment. It tries again if segments are archived meanwhile.
func collect(ctx context.Context, dir string, running bool, m *Manifest) (files []openFile, err error) {
	for range 10 {
		var whole bool
		if files, whole, err = collectOnce(ctx, dir, running, m); whole || err != nil && !errors.Is(err, os.ErrNotExist) {
			return files, err
		}
		closeAll(files)
	}
	return nil, errors.Join(errors.New("the journal is being archived: try again"), err)
}

func collectOnce(ctx context.Context, dir string, running bool, m *Manifest) (files []openFile, whole bool, err error) {
	anchor, err := journal.ReadAnchor(nil, dir)
	if err != nil {
		return nil, false, err
	}
	head, err := lastSynced(ctx, dir, running)
	if err != nil {
		return nil, false, err
	}
	m.Seq, m.Hash, m.Archived = int64(head.Seq), head.Hash.String(), 0
	if anchor != nil {
		m.Archived = int64(anchor.Seq)
	}
	files, err = openSegments(ctx, dir, anchor, head)
	if err != nil {
		return files, false, err
	}
	if anchor != nil {
		state, err := os.Open(filepath.Join(dir, anchor.StateName()))
		if err != nil {
			return files, false, err
		}
		files = append(files, openFile{File{"journal/" + anchor.StateName(), anchor.Bytes, state}, state})
	}
	// These are read after the segments, so a segment that was rewritten meanwhile has its redaction here.
	for _, name := range []string{"anchor", "redactions", "checkpoints"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, false, err
		}
		if name == "checkpoints" {
			text = checkpointsUpTo(text, head.Seq, m)
		}
		files = append(files, textFile("journal/"+name, text))
	}
	after, err := journal.ReadAnchor(nil, dir)
	if err != nil {
		return files, false, err
	}
	return files, (anchor == nil) == (after == nil) && (anchor == nil || anchor.Seq == after.Seq), nil
}

// lastSynced returns the last entry on disk: that of the head mark, or, if the mark is old or missing and no kernel runs,
// the last whole line.
func lastSynced(ctx context.Context, dir string, running bool) (head journal.Head, err error) {
	mark, err := journal.ReadMark(nil, dir)
	if err != nil || mark.Seq > 0 && running {
		return mark, err
	}
	r := journal.NewReader(nil, dir, journal.ReaderOptions{From: mark.Seq})
	defer r.Close() // read only
	for {
		record, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return head, err
		}
		head = journal.Head{Seq: record.Seq, Hash: record.Hash}
	}
	if head.Seq == 0 {
		return head, errors.New("the journal has no entry yet")
	}
	return head, nil
}

// openSegments opens the segments up to head; the last one is cut after head.
func openSegments(ctx context.Context, dir string, anchor *journal.Anchor, head journal.Head) (files []openFile, err error) {
	r := journal.NewReader(nil, dir, journal.ReaderOptions{From: head.Seq})
	defer r.Close() // read only
	record, err := r.Next(ctx)
	if err != nil {
		return nil, err
	}
	end := record.Offset + int64(len(record.Line)) + 1
	paths, err := filepath.Glob(filepath.Join(dir, "[0-9]*.ndjson"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	first := uint64(1)
	if anchor != nil {
		first = anchor.Seq + 1
	}
	for _, path := range paths {
		name := filepath.Base(path)
		var seq uint64
		if _, err := fmt.Sscanf(name, "%020d.ndjson", &seq); err != nil || len(name) != len("00000000000000000001.ndjson") {
			continue
		}
		if seq < first || seq > record.Segment {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return files, err
		}
		files = append(files, openFile{File{"journal/" + name, end, f}, f})
		info, err := f.Stat()
		if err != nil {
			return files, err
		}
		if seq != record.Segment {
			files[len(files)-1].Size = info.Size()
		}
	}
	return files, nil
}

func checkpointsUpTo(text []byte, seq uint64, m *Manifest) (kept []byte) {
	m.Checkpoint = ""
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if cp, err := journal.ParseCheckpoint(line); err == nil && cp.Seq <= seq {
			kept = append(append(kept, line...), '\n')
			m.Checkpoint = string(line)
		}
	}
	return kept
}

// write writes the archive.
func (s *Source) write(ctx context.Context, w io.Writer, files []openFile, m *Manifest) error {
	packed := gzip.NewWriter(w)
	out := tar.NewWriter(packed)
	header, err := schema.Marshal(&m.Header)
	if err == nil {
		err = put(out, headerName, int64(len(header)), bytes.NewReader(header), s.Now())
	}
	for i := range files {
		if err != nil {
			return fmt.Errorf("write backup: %w", err)
		}
		h := sha256.New()
		f := &files[i].File
		err = put(out, f.Name, f.Size, io.TeeReader(reading{ctx, io.NewSectionReader(f, 0, f.Size)}, h), s.Now())
		m.Members = append(m.Members, Member{Name: f.Name, Bytes: f.Size, Sum: sum(h.Sum(nil))})
	}
	var manifest []byte
	if err == nil {
		manifest, err = m.sign(s.Key)
	}
	if err == nil {
		err = put(out, manifestName, int64(len(manifest)), bytes.NewReader(manifest), s.Now())
	}
	if err == nil {
		err = errors.Join(out.Close(), packed.Close())
	}
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return nil
}

func put(out *tar.Writer, name string, size int64, from io.Reader, now time.Time) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: now, Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
		return err
	}
	n, err := io.Copy(out, from)
	if err == nil && n != size {
		err = fmt.Errorf("%s became shorter while it was copied", name)
	}
	return err
}

// reading is a reader that fails when its context is done.
type reading struct {
	ctx context.Context
	r   io.Reader
}

func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
