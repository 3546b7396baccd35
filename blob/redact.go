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

// longEnough is the minimum length in bytes of a value that is searched inside blobs.
const longEnough = 4

// Redact removes the blobs that consist only of the value, except for a line end. It returns how many files it has removed,
// and the paths of those that have the value among other data, are being read, or could not be read or removed.
func (s *Store) Redact(ctx context.Context, value []byte) (removed int, left []string, err error) {
	removed, left, err = redact(ctx, s.root.Load(), s.dir, value, s.redactOne)
	shareErr := s.eachShare(func(pid int64, root *os.Root) error {
		n, kept, err := redact(ctx, root, fmt.Sprintf("%s of process %d", s.dir, pid), value, root.Remove)
		removed, left = removed+n, append(left, kept...)
		return err
	})
	return removed, left, errors.Join(err, shareErr)
}

// RedactDir is Redact for a directory that no Store has open; the directory may be missing.
func RedactDir(ctx context.Context, dir string, value []byte) (removed int, left []string, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("open blobs: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return redact(ctx, root, dir, value, root.Remove)
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

func redact(ctx context.Context, root *os.Root, dir string, value []byte, remove func(name string) error) (removed int, left []string, err error) {
	if len(value) == 0 {
		return 0, nil, nil
	}
	err = fs.WalkDir(root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // it was removed, or a process has removed permissions of its folder
		}
		has, err := compare(root, at, value)
		if err == nil && has == all {
			err = remove(at)
			if err == nil {
				removed++
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) || has == some {
			left = append(left, filepath.Join(dir, at)) // an unreadable file may have the value
		}
		return nil
	})
	if err != nil {
		return removed, left, fmt.Errorf("search blobs: %w", err)
	}
	return removed, left, nil
}

// extent is how much of a file a value is.
type extent int

const (
	none extent = iota
	some
	all
)

// compare searches a file for the value.
func compare(root *os.Root, name string, value []byte) (extent, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return none, err
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	in := bufio.NewReaderSize(f, max(1<<16, 2*len(value)))
	for begin := true; ; begin = false {
		part, err := in.Peek(in.Size())
		if err != nil && !errors.Is(err, io.EOF) {
			return none, err
		}
		switch at := bytes.Index(part, value); {
		case begin && at == 0 && int64(len(value)) == info.Size(), begin && at == 0 && string(part[len(value):]) == "\n":
			return all, nil
		case at >= 0 && len(value) >= longEnough:
			return some, nil
		case err != nil:
			return none, nil
		}
		if _, err := in.Discard(len(part) - len(value)); err != nil { // the next part may have the end of the value
			return none, err
		}
	}
}
