package steps

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func stampOf(st *unix.Stat_t) stamp {
	return stamp{st.Ino, st.Size, st.Ctim.Nano(), st.Mtim.Nano(), st.Mode}
}

func device(st *unix.Stat_t) uint64 { return st.Dev }

// syncTree makes durable what was written in a tree.
func syncTree(root *os.File) error { return unix.Syncfs(int(root.Fd())) }

// openPlain opens a directory by an absolute path, of which no part is a link.
func openPlain(path string) (int, error) {
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err = errors.Join(err, unix.Close(at)); err != nil {
			return -1, err
		}
		at = next
	}
	fd, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return fd, errors.Join(err, unix.Close(at))
}
