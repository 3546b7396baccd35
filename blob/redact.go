package blob

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Redacted is what a redaction found among blobs.
type Redacted struct {
	Removed int      // blobs that had a value and nothing else; each name of a shared one counts
	Left    []string // paths of those that have a value among other data, are being read, or could not be removed
}

// longEnough is the length in bytes of a value that is looked for inside blobs.
const longEnough = 4

// Redact removes the blobs that are one of the values, and finds those that contain one.
func (s *Store) Redact(ctx context.Context, values [][]byte) (Redacted, error) {
	return redact(ctx, s.root.Load(), s.dir, values, s.redactOne)
}

// RedactDir is Redact for a directory that no Store has open; it need not exist.
func RedactDir(ctx context.Context, dir string, values [][]byte) (r Redacted, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("open blobs: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return redact(ctx, root, dir, values, root.Remove)
}

var errInUse = errors.New("the blob is being read")

// redactOne removes a file, unless its blob is in use.
func (s *Store) redactOne(name string) error {
	own := name
	if first, rest, below := strings.Cut(name, "/"); below && strings.HasPrefix(first, sharedPrefix) {
		own = rest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[own] > 0 || s.writing[own] {
		return errInUse
	}
	err := s.root.Load().Remove(name)
	if err == nil && own == name {
		s.forget(name)
	}
	return err
}

func redact(ctx context.Context, root *os.Root, dir string, values [][]byte, remove func(name string) error) (r Redacted, err error) {
	err = fs.WalkDir(root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // it was removed, or a process has closed its own folder
		}
		whole, within, err := holds(root, at, values)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			r.Left = append(r.Left, filepath.Join(dir, at)) // what cannot be read may have it
			return nil
		case !within:
			return nil
		case whole:
			if err := remove(at); err == nil || errors.Is(err, fs.ErrNotExist) {
				r.Removed++
				return nil
			}
		}
		r.Left = append(r.Left, filepath.Join(dir, at))
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("look for blobs: %w", err)
	}
	return r, nil
}

// holds reports whether a file has one of the values, and whether it has nothing else but a line end.
func holds(root *os.Root, name string, values [][]byte) (whole, within bool, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, false, err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return false, false, err
	}
	longest := 0
	for _, value := range values {
		longest = max(longest, len(value))
	}
	in := bufio.NewReaderSize(f, max(1<<16, 2*longest))
	for off := int64(0); ; {
		part, err := in.Peek(in.Size())
		if err != nil && !errors.Is(err, io.EOF) {
			return false, false, err
		}
		for _, value := range values {
			at := bytes.Index(part, value)
			if at < 0 || len(value) == 0 {
				continue
			}
			is := off == 0 && at == 0 && int64(len(value)) == info.Size() || off == 0 && string(part) == string(value)+"\n"
			whole, within = whole || is, within || is || len(value) >= longEnough
		}
		if within || err != nil {
			return whole, within, nil
		}
		n, _ := in.Discard(len(part) - longest) // a value may begin in this part and end in the next
		off += int64(n)
	}
}
