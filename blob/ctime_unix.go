//go:build unix && !darwin && !freebsd && !netbsd

package blob

import "syscall"

// ctime is when the inode was changed, links to it included.
func ctime(st *syscall.Stat_t) syscall.Timespec { return st.Ctim }
