package steps

import (
	"os"

	"golang.org/x/sys/unix"
)

func stampOf(st *unix.Stat_t) stamp {
	return stamp{st.Ino, st.Size, st.Ctim.Nano(), st.Mtim.Nano(), st.Mode}
}

func device(st *unix.Stat_t) uint64 { return st.Dev }

// syncTree makes durable what was written in a tree.
func syncTree(root *os.File) error { return unix.Syncfs(int(root.Fd())) }
