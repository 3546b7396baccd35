package journal

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// File systems that may renumber files each time they are mounted.
const (
	magicFUSE = 0x65735546
	magic9P   = 0x01021997
	magicCIFS = 0xff534d42
	magicSMB2 = 0xfe534d42
)

func directoryID(dir string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", fmt.Errorf("look at file system of %s: %w", dir, err)
	}
	switch uint32(fs.Type) {
	case magicFUSE, magic9P, magicCIFS, magicSMB2:
		return "", nil
	}
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", dir, err)
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprint(st.Ino), nil
	}
	return fmt.Sprintf("%d@%d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}
