package blob

import (
	"errors"
	"fmt"
	"syscall"
)

const (
	// operator is the process of the operator's own calls.
	operator = 0
	// reserved is the part of the quota that only the operator's calls may use.
	reserved = 8
	// leastRoom is what processes leave free of the file system of the store. It is enough for the sockets, the logs and the
	// files of programs that the operator starts.
	leastRoom = 16 << 20
)

// hasRoom reports whether a process may write bytes to the file system of dir. If that is not known, the quota decides.
func hasRoom(dir string, bytes int64) bool {
	free, size, err := Room(dir)
	return err != nil || free-bytes >= least(size)
}

// least returns what processes leave free of a file system of that size.
func least(size int64) int64 { return min(leastRoom, size/reserved) }

// Room returns the free and the total bytes of the file system of dir.
func Room(dir string) (free, size int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil //nolint:unconvert // the types differ between platforms
}

// nearlyFull is the part of the quota, in percent, from which on Trouble warns.
const nearlyFull = 80

// Trouble returns what the operator should know about the room for blobs, or "".
func (s *Store) Trouble() string {
	used := s.Usage()
	if percent := max(used.Bytes*100/s.limits.DirBytes, int64(used.Files)*100/int64(s.limits.DirFiles)); percent >= nearlyFull {
		return fmt.Sprintf("the blob directory is %d%% full: unused blobs are removed after blobs.ttl (%v), more fit with blobs.dir_bytes and blobs.dir_files", percent, s.limits.TTL)
	}
	free, size, err := Room(s.dir)
	if err == nil && free < 2*least(size) {
		return fmt.Sprintf("the file system of the runtime directory is nearly full, %d MiB are free: remove files there", free>>20)
	}
	return ""
}

// isFull reports whether an error says that a file system or a quota of it is used up.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
