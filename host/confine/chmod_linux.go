package confine

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// chmod carries out chmod(2), fchmod(2), fchmodat(2) and fchmodat2(2) with the bit setgid, for directories of the program's user. What the
// mounts of the program forbid fails here too, since the file is reached through them.
func (c *Calls) chmod(call *notification) (errno unix.Errno, done bool) {
	pid, mode := int(call.pid), uint32(call.args[1])
	var fd int
	var err error
	switch call.number {
	case unix.SYS_FCHMOD:
		fd, err = copyOf(pid, int(int32(call.args[0])))
	case unix.SYS_FCHMODAT:
		fd, err = fileAt(pid, int(int32(call.args[0])), uintptr(call.args[1]), 0)
		mode = uint32(call.args[2])
	case unix.SYS_FCHMODAT2:
		fd, err = fileAt(pid, int(int32(call.args[0])), uintptr(call.args[1]), int(call.args[3]))
		mode = uint32(call.args[2])
	default: // chmod, which not every machine has
		fd, err = fileAt(pid, unix.AT_FDCWD, uintptr(call.args[0]), 0)
	}
	if err != nil {
		return number(err), true
	}
	defer closeFD(fd)
	if !c.valid(call.id) {
		return 0, false
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return number(err), true
	}
	if mode&setuidBit != 0 || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != c.User { // the daemon's privileges do not count
		return unix.EPERM, true
	}
	if !inGroup(pid, int(st.Gid)) { // the system removes the bit too, unless the caller is privileged
		mode &^= setgidBit
	}
	if err := unix.Chmod(fdPath(fd), mode&0o7777); err != nil {
		return number(err), true
	}
	return 0, true
}

// fileAt opens what a path means to a process.
func fileAt(pid, dir int, at uintptr, flags int) (int, error) {
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return -1, unix.EINVAL
	}
	path, err := readText(pid, at)
	if err != nil {
		return -1, err
	}
	if path == "" {
		if flags&unix.AT_EMPTY_PATH == 0 || dir == unix.AT_FDCWD {
			return -1, unix.ENOENT
		}
		return copyOf(pid, dir)
	}
	if number, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok && flags&unix.AT_SYMLINK_NOFOLLOW == 0 { // as libraries do
		if fd, err := strconv.Atoi(number); err == nil {
			return copyOf(pid, fd)
		}
	}
	if path[0] != '/' && dir != unix.AT_FDCWD {
		above, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, dir))
		if err != nil {
			return -1, unix.EBADF
		}
		if above[0] != '/' {
			return -1, unix.ENOTDIR
		}
		path = above + "/" + path
	}
	return resolve(pid, path, flags&unix.AT_SYMLINK_NOFOLLOW != 0)
}

// readText reads a text that ends with NUL, at most as long as a path, from a process.
func readText(pid int, at uintptr) (string, error) {
	text, whole, err := readUntil(pid, at, unix.PathMax)
	if err == nil && !whole {
		err = unix.ENAMETOOLONG
	}
	return string(text), err
}

// readUntil reads a text from a process up to its NUL, and reports whether that is among the bytes that were read, which are about as
// many as most.
func readUntil(pid int, at uintptr, most int) (text []byte, whole bool, err error) {
	page := uintptr(os.Getpagesize())
	for len(text) < most {
		part, err := readMemory(pid, at, int(page-at%page)) // the next page may not be there
		if err != nil {
			return nil, false, err
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return append(text, part[:end]...), true, nil
		}
		text, at = append(text, part...), at+uintptr(len(part))
	}
	return text, false, nil
}

// inGroup reports whether a process has a group.
func inGroup(pid, group int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	var has []string
	for line := range strings.Lines(string(status)) {
		name, groups, _ := strings.Cut(line, ":")
		switch fields := strings.Fields(groups); {
		case name == "Gid" && len(fields) == 4:
			has = append(has, fields[3]) // the one that counts for files
		case name == "Groups":
			has = append(has, fields...)
		}
	}
	return slices.Contains(has, strconv.Itoa(group))
}
