package sshauth

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Source reads a file of authorized keys, again whenever it has changed. It may be used by many goroutines.
type Source struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	keys    *AuthorizedKeys
	seen    fileStamp // of the file that keys was read from
	settled bool      // whether another file than that one would have another stamp
	sum     [sha256.Size]byte
}

// NewSource returns a Source of the file at path; now is the clock. Nothing is read yet.
func NewSource(path string, now func() time.Time) *Source { return &Source{path: path, now: now} }

// FileError says what is wrong with a file that decides who gets in. It is for the operator: it names the path.
type FileError struct {
	Path    string
	Problem string // what is wrong, such as "is a symbolic link"
	Remedy  string // what to do about it
}

// Error names the file, what is wrong with it and what to do.
func (e *FileError) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.Problem, e.Remedy) }

// fileStamp tells whether a file is still what it was. A change of the content cannot leave ctime as it was.
type fileStamp struct {
	dev, ino     uint64
	size         int64
	mode, uid    uint32
	mtime, ctime int64 // nanoseconds since 1970
}

// settleTime is how long after a change another one could go unseen: file systems count time in steps, the coarsest in
// two seconds.
const settleTime = 2 * time.Second

// Load returns the keys of the file. As long as its content stays the same, so does the pointer, so that a caller that logs what
// was refused sees when to. The error is a *FileError, or wraps fs.ErrNotExist or another error of the file system; with
// an error nobody gets in, and never falls back to open mode or to what the file said before.
//
// The file has to be a regular one of ours or of root, no symbolic link, in a directory of ours or of root; neither may
// be writable by anybody else.
func (s *Source) Load() (*AuthorizedKeys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := judgeDirOf(s.path); err != nil {
		return nil, err
	}
	if s.keys != nil && s.settled {
		var st unix.Stat_t
		if err := unix.Lstat(s.path, &st); err == nil && stampOf(&st) == s.seen {
			return s.keys, nil
		}
	}
	text, stamp, err := readStable(s.path)
	if err != nil {
		return nil, err
	}
	changed := time.Unix(0, max(stamp.ctime, stamp.mtime))
	s.seen, s.settled = stamp, s.now().Sub(changed) > settleTime
	if sum := sha256.Sum256(text); s.keys == nil || sum != s.sum {
		s.keys, s.sum = ParseAuthorizedKeys(text, time.Local), sum
	}
	return s.keys, nil
}

// readStable reads a file that did not change meanwhile.
func readStable(path string) ([]byte, fileStamp, error) {
	for range 3 {
		text, before, after, err := readOnce(path)
		if err != nil {
			return nil, fileStamp{}, fmt.Errorf("read authorized keys: %w", err)
		}
		if before == after && int64(len(text)) == after.size {
			return text, after, nil
		}
	}
	return nil, fileStamp{}, &FileError{path, "changes while it is read", "write it under another name, then rename it"}
}

// readOnce judges the very file that it reads, not what the path may name a moment later.
func readOnce(path string) (text []byte, before, after fileStamp, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, before, after, &FileError{path, "is a symbolic link", "name the file itself with --authorized-keys, or copy it"}
	}
	if err != nil {
		return nil, before, after, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer func() { _ = file.Close() }() // it was only read
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, before, after, err
	}
	if before = stampOf(&st); before.mode&unix.S_IFMT != unix.S_IFREG {
		return nil, before, after, &FileError{path, "is no regular file", "put the keys into one"}
	}
	if err := judgeOwner(path, before); err != nil {
		return nil, before, after, err
	}
	if before.size > maxKeysFile {
		return nil, before, after, &FileError{path, fmt.Sprintf("is over %d bytes long", maxKeysFile), "remove the keys that nobody needs"}
	}
	if text, err = io.ReadAll(io.LimitReader(file, maxKeysFile+1)); err != nil {
		return nil, before, after, err
	}
	err = unix.Fstat(fd, &st)
	return text, before, stampOf(&st), err
}

// judgeDirOf refuses a directory in which somebody else could put another file in the place of path.
func judgeDirOf(path string) error {
	dir := filepath.Dir(path)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("inspect authorized keys: %w", &fs.PathError{Op: "stat", Path: dir, Err: err})
	}
	return judgeOwner(dir, stampOf(&st))
}

// judgeOwner refuses what belongs to somebody else, or what somebody else may write.
func judgeOwner(path string, s fileStamp) error {
	if own := uint32(os.Geteuid()); s.uid != own && s.uid != 0 {
		return &FileError{path, fmt.Sprintf("belongs to user %d, not to user %d", s.uid, own), "look at who wrote it, then copy it"}
	}
	if s.mode&0o022 != 0 {
		return &FileError{
			path, fmt.Sprintf("is writable by group or others (mode %04o)", s.mode&0o7777),
			"look at what is in it, then chmod it go-w",
		}
	}
	return nil
}

func stampOf(st *unix.Stat_t) fileStamp {
	return fileStamp{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mode: uint32(st.Mode), uid: st.Uid,
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}
}
