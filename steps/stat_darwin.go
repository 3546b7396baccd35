package steps

import (
	"os"

	"golang.org/x/sys/unix"
)

func stampOf(st *unix.Stat_t) stamp {
	return stamp{st.Ino, st.Size, st.Ctim.Nano(), st.Mtim.Nano(), uint32(st.Mode)}
}

func device(st *unix.Stat_t) uint64 { return uint64(st.Dev) }

// syncTree makes durable what was written in a tree.
func syncTree(*os.File) error { return unix.Sync() }

// openPlain opens a directory by an absolute path, of which no part is a link.
func openPlain(path string) (int, error) {
	return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW_ANY, 0)
}
