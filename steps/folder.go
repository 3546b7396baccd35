package steps

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the depth of a tree, since each level needs a descriptor.
const maxDepth = 1000

// openRoot opens the tree itself. No link is followed: who can rename the directory could lead to any other with one.
func openRoot(path string) (*os.File, error) {
	fd, err := openPlain(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openIn opens a directory by its name in an open one, without following a link.
func openIn(parent *os.File, name string) (*os.File, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openPath opens a directory of the tree by its path, name by name.
func openPath(root *os.File, path string) (*os.File, error) {
	at, err := dup(root)
	if err != nil || path == "" {
		return at, err
	}
	for name := range strings.SplitSeq(path, "/") {
		next, err := openIn(at, name)
		if err = errors.Join(err, at.Close()); err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor: %w", err)
	}
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// namesIn returns the sorted names of an open directory.
func namesIn(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// statIn returns what stat says of a name in an open directory; a link is not followed.
func statIn(dir *os.File, name string) (st unix.Stat_t, err error) {
	_, err = ignoringEINTR(func() (int, error) {
		return 0, unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return st, err
}

// file is an open regular file, which is read from its begin. It is no os.File, which for each asks the system whether it can be waited for.
type file struct {
	fd   int
	rest int64 // bytes that it had when it was opened, and that were not read
}

// openFile opens a regular file to read. A pipe that took its place does not block, and nothing else is opened.
func openFile(dir *os.File, name string) (f *file, st unix.Stat_t, err error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, st, err
	}
	f = &file{fd: fd}
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, st, errors.Join(err, f.Close())
	}
	if uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG {
		return nil, st, errors.Join(errMoved, f.Close())
	}
	f.rest = st.Size
	return f, st, nil
}

// Read returns the end with the last bytes, if the file is as long as it was.
func (f *file) Read(b []byte) (int, error) {
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(f.fd, b) })
	if err != nil {
		return max(n, 0), err
	}
	if f.rest -= int64(n); n == 0 && len(b) > 0 || n < len(b) && f.rest == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Close() error { return unix.Close(f.fd) }

// errMoved is the error for an entry that another took the place of while it was examined.
var errMoved = errors.New("it was replaced meanwhile")

// linkIn returns the target of a symbolic link.
func linkIn(dir *os.File, name string) (string, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		n, err := ignoringEINTR(func() (int, error) { return unix.Readlinkat(int(dir.Fd()), name, b) })
		if err != nil || n < size {
			return string(b[:max(n, 0)]), err
		}
	}
}

func ignoringEINTR(do func() (int, error)) (int, error) {
	for {
		n, err := do()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// isGone reports whether an error says that a path is not there any more, or not as what it was.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, errMoved)
}

// join joins a path of the tree, which is "" for the tree itself, and a name.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// split is the opposite of join.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}
