package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/schema/fault"
)

// Sink delivers records.
type Sink interface {
	// Deliver returns after all records of batch are delivered. It may be called again with the same records.
	Deliver(ctx context.Context, batch []*Record) error
	Close() error
}

// Format converts a record to a line of text, without the line break, and such a line to its position.
type Format struct {
	Begin string // prefix of all lines
	Line  func(r *Record) ([]byte, error)
	At    func(line []byte) (Position, error)
}

// JSONL is the format of Record.Line.
var JSONL = Format{
	Begin: `{"id":"`,
	Line:  (*Record).Line,
	At: func(line []byte) (Position, error) {
		id, err := LineID(line)
		if err != nil {
			return Position{}, err
		}
		return ParsePosition(id)
	},
}

// File is a file of lines. Its last complete line is the position of the export, so that no record is written twice.
type File struct {
	file   *os.File
	format Format
	at     Position
	buf    []byte
}

// OpenFile opens a file for appending, creates it if it does not exist, and locks it until Close. It cuts off an
// incomplete last line, which a crash may leave. A file with other lines is refused.
func OpenFile(path string, format Format) (_ *File, err error) {
	f := &File{format: format}
	if f.file, err = lockedFile(path, path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open export: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.ExportUnreadable.New("%s is not a regular file: leave --to out to write to stdout", path)
	}
	return f, f.resume(path, info.Size())
}

// resume reads the position from the last complete line, and cuts off the rest.
func (f *File) resume(path string, size int64) error {
	line, end, err := lastLine(f.file, size)
	if err != nil {
		return fmt.Errorf("read export: %w", err)
	}
	if end == 0 && size > 0 { // after a crash, the file may have a part of the first line
		begin := make([]byte, min(size, int64(len(f.format.Begin))))
		if _, err := f.file.ReadAt(begin, 0); err != nil {
			return fmt.Errorf("read export: %w", err)
		}
		if !strings.HasPrefix(f.format.Begin, string(begin)) {
			return fault.ExportUnreadable.New("%s has other content than exported records: nothing was changed; name another file", path)
		}
	}
	if end > 0 {
		if !bytes.HasPrefix(line, []byte(f.format.Begin)) {
			err = errors.New("it has another form")
		} else {
			f.at, err = f.format.At(line)
		}
		if err != nil {
			return fault.ExportUnreadable.New("the last line of %s is not an exported record (%v): nothing was changed; name another file", path, err)
		}
	}
	if end < size {
		if err := f.file.Truncate(end); err != nil {
			return fmt.Errorf("cut torn line off export: %w", err)
		}
	}
	if _, err := f.file.Seek(end, io.SeekStart); err != nil {
		return fmt.Errorf("open export: %w", err)
	}
	if size > 0 {
		return nil
	}
	return syncDir(filepath.Dir(path)) // so that a power loss does not remove the file
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// lastLine returns the last complete line with its line break, and the offset of its end, 0 if there is none. It reads
// backwards from the end of the file, so its time and memory depend on that line alone.
func lastLine(r io.ReaderAt, size int64) (line []byte, end int64, err error) {
	const step = 64 << 10
	var tail []byte // of the file, from start on
	for start := size; start > 0; {
		n := min(step, start)
		start -= n
		part := make([]byte, n, n+int64(len(tail)))
		if _, err := r.ReadAt(part, start); err != nil {
			return nil, 0, err
		}
		tail = append(part, tail...)
		last := bytes.LastIndexByte(tail, '\n')
		if last < 0 {
			continue
		}
		first := bytes.LastIndexByte(tail[:last], '\n')
		if first < 0 && start > 0 {
			continue
		}
		return tail[first+1 : last], start + int64(last) + 1, nil
	}
	return nil, 0, nil
}

// At returns the position of the last record in the file.
func (f *File) At() Position { return f.at }

// Deliver implements Sink. The records are on disk when it returns.
func (f *File) Deliver(_ context.Context, batch []*Record) error {
	text, err := lines(f.buf[:0], f.format, batch)
	if err != nil {
		return err
	}
	f.buf = text
	if _, err := f.file.Write(text); err != nil {
		return fmt.Errorf("write export: %w", err) // the next start reads the position from the file
	}
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("sync export: %w", err)
	}
	f.at = batch[len(batch)-1].At
	return nil
}

// Close implements Sink.
func (f *File) Close() error { return lockfile.Release(f.file) }

// Stream writes lines to a stream that cannot be read back.
type Stream struct {
	To     io.Writer
	Format Format

	buf []byte
}

// Deliver implements Sink.
func (s *Stream) Deliver(_ context.Context, batch []*Record) error {
	text, err := lines(s.buf[:0], s.Format, batch)
	if err != nil {
		return err
	}
	s.buf = text
	if _, err := s.To.Write(text); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return nil
}

// Close implements Sink.
func (*Stream) Close() error { return nil }

func lines(text []byte, format Format, batch []*Record) ([]byte, error) {
	for _, r := range batch {
		line, err := format.Line(r)
		if err != nil {
			return text, err
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}
