package lockfile

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Holder returns the PID of a process that has a lock on f's file, or 0 if it is unknown. It is only for messages, since
// the holder may change at any time.
func Holder(f *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	// 1: FLOCK  ADVISORY  WRITE 4711 fe:01:262146 0 EOF; a waiting lock has "->" after the number.
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	// The table is read in pieces, so a line can be missed while other locks come and go.
	for range 3 {
		table, err := os.ReadFile("/proc/locks")
		if err != nil {
			return 0
		}
		if pid := holderIn(table, file); pid != 0 {
			return pid
		}
	}
	return 0
}

// holderIn returns the holder of a lock on a file, given as device and inode, in the table of all locks; 0 if it has none.
func holderIn(table []byte, file string) int {
	for line := range bytes.Lines(table) {
		fields := bytes.Fields(line)
		if len(fields) < 6 || string(fields[1]) != "FLOCK" || string(fields[5]) != file {
			continue
		}
		var pid int
		if _, err := fmt.Sscan(string(fields[4]), &pid); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
