package gitdirs

import "syscall"

// ctimeOf returns when a file's status was last changed.
func ctimeOf(st *syscall.Stat_t) (sec, nsec int64) { return int64(st.Ctim.Sec), int64(st.Ctim.Nsec) }
