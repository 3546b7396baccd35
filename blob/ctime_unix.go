//go:build unix && !darwin && !freebsd && !netbsd

package blob

import "syscall"

// ctime returns the time of the last change of the inode, including its links.
func ctime(st *syscall.Stat_t) syscall.Timespec { return st.Ctim }
