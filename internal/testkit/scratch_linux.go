package testkit

import "golang.org/x/sys/unix"

// scratchRoom is how many bytes must be free in memory before tests keep their files there: several times what all tests use.
const scratchRoom = 2 << 30

// scratch returns a directory in memory for files of tests, or "": /dev/shm may be small, and may not let programs run.
func scratch() string {
	const dir = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || fs.Flags&(unix.ST_NOEXEC|unix.ST_RDONLY) != 0 {
		return ""
	}
	var machine unix.Sysinfo_t
	if err := unix.Sysinfo(&machine); err != nil {
		return ""
	}
	free := min(fs.Bavail*uint64(fs.Bsize), machine.Freeram*uint64(machine.Unit))
	if free < scratchRoom || unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return ""
	}
	return dir
}
