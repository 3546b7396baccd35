package blob

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// settle is longer than the steps in which file systems count time. A file that was changed longer ago shows any change to
// come by its ctime.
const settle = 25 * time.Millisecond

// identity is what tells a file from all others, whatever its names; the zero identity is that of none.
type identity struct{ dev, ino uint64 }

func identify(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(st.Dev), st.Ino}
}

// ours reports whether a file belongs to the user that runs this.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// identityOf is what the system says of a file; nil where it does not.
func identityOf(info fs.FileInfo) *syscall.Stat_t {
	st, _ := info.Sys().(*syscall.Stat_t)
	return st
}

// single reports whether a file is a regular one of the user's that has one name.
func single(info fs.FileInfo, user int) bool {
	st := identityOf(info)
	return st != nil && info.Mode().IsRegular() && int(st.Uid) == user && st.Nlink == 1
}

// changed is when a file was last written to, linked or unlinked. No program can set it.
func changed(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	at := ctime(st)
	return time.Unix(at.Unix())
}

// errYoung says that a file was changed too recently to tell whether it is being swapped.
var errYoung = errors.New("changed just now")

// judge says whether the file that was opened is the one that the name stands for, under no other name. Looking at both is
// not enough: while somebody makes and removes a link again and again, the file may have one name when its links are
// counted and be another's file when the name is looked at. A link changes the file's ctime, though. Where that was in the
// past before all looking, and is the same after it, nothing was linked meanwhile, and all that was seen holds at once.
func (f folder) judge(file *os.File, name string) (fs.FileInfo, error) {
	start := time.Now()
	before, err := file.Stat()
	if err != nil {
		return nil, err
	}
	named, err := f.Lstat(name)
	if err != nil {
		return nil, err
	}
	after, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return after, agree(f.user(), start, before, named, after)
}

// agree is the verdict on what was seen, from start on, in this order: the open file, the name, the open file again.
func agree(user int, start time.Time, before, named, after fs.FileInfo) error {
	switch {
	case !single(before, user), !single(after, user), !os.SameFile(before, named):
		return foreign()
	case start.Sub(changed(before)) <= settle, !changed(after).Equal(changed(before)):
		return errYoung
	}
	return nil
}

// patiently is judge that gives a file which was written just now the time to settle.
func (f folder) patiently(file *os.File, name string, wait time.Duration) (fs.FileInfo, error) {
	info, err := f.judge(file, name)
	if err == errYoung && wait > 0 { //nolint:errorlint // the very value that judge returns
		time.Sleep(wait)
		info, err = f.judge(file, name)
	}
	if err == errYoung { //nolint:errorlint // as above
		err = fault.BlobChanging.New("the file that the reference names is being changed: wait until it is whole, then try again")
	}
	return info, err
}
