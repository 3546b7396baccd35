package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Execve and execveat are only looked at: the program's own system call continues, or fails. A failure is certain. What continues reads
// path and arguments again, so that they can be others than those that were seen.

// exec tells Exec what a process wants to execute, and lets it, or not.
func (c *Calls) exec(call *notification) (errno unix.Errno, done bool) {
	e := c.look(call)
	if !c.valid(call.id) { // what was read may be another process's
		c.search.end()
		return 0, false
	}
	if errno = c.Exec(e); errno != 0 {
		return errno, true
	}
	c.proceed(call.id)
	return 0, false
}

// proceed lets the system carry out a call.
func (c *Calls) proceed(id uint64) {
	r := response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	c.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// search is the last exec, if nothing was at its path. The next call of the same thread, from the same place and with the same arguments,
// goes on with a search in PATH: what was found out about the process holds, and only the path is another.
type search struct {
	on   bool
	call notification
	exec Exec
	root int // directory at which the process's paths begin
}

// goesOn reports whether a call is of the search.
func (s *search) goesOn(call *notification, path string, args []string, cut bool) bool {
	return s.on && call.pid == s.call.pid && call.ip == s.call.ip && call.number == s.call.number && path != "" && path[0] == '/' &&
		cut == s.exec.Cut && slices.Equal(args, s.exec.Args)
}

func (s *search) end() {
	if s.on {
		closeFD(s.root)
		s.on = false
	}
}

// look reads what a process wants to execute.
func (c *Calls) look(call *notification) *Exec {
	thread := int(call.pid)
	e := &Exec{Time: time.Now(), Thread: thread}
	dir, at, list := unix.AT_FDCWD, uintptr(call.args[0]), uintptr(call.args[1])
	if call.number == unix.SYS_EXECVEAT {
		dir, at, list = int(int32(call.args[0])), uintptr(call.args[1]), uintptr(call.args[2])
	}
	path, places, err := c.readHead(thread, at, list)
	if e.Hidden = errors.Is(err, unix.EPERM); !e.Hidden {
		e.Args, e.Cut = c.readArgs(thread, list, places)
		if opened := openedAt(thread, dir, path); opened != "" {
			e.Path = opened
		} else if c.search.goesOn(call, path, e.Args, e.Cut) {
			return c.tryNext(e, path)
		}
	}
	c.search.end()
	e.PID, e.Parent = family(thread)
	e.Program = linkOf(thread, "exe")
	if e.Hidden {
		return e
	}
	e.Dir = linkOf(thread, "cwd")
	if e.Path != "" {
		return e
	}
	e.Path = pathAt(thread, dir, e.Dir, path)
	root, err := rootOf(thread)
	if err != nil {
		e.Missing = e.Path == ""
		return e
	}
	if e.Missing = missing(root, e.Path); e.Missing {
		c.search = search{true, *call, *e, root}
	} else {
		closeFD(root)
	}
	return e
}

// tryNext completes the next try of a search.
func (c *Calls) tryNext(e *Exec, path string) *Exec {
	of := &c.search.exec
	e.PID, e.Parent, e.Program, e.Dir, e.Path = of.PID, of.Parent, of.Program, of.Dir, path
	if e.Missing = missing(c.search.root, path); !e.Missing { // this one is executed
		e.Dir = linkOf(e.Thread, "cwd")
		c.search.end()
	}
	return e
}

// openedAt returns what the system calls an open file of a thread that a path means, or its program; "" if it means none of them. The
// paths of /proc are other files to every process.
func openedAt(thread, dir int, path string) string {
	if path == "" && dir != unix.AT_FDCWD { // AT_EMPTY_PATH
		return linkOf(thread, "fd/"+strconv.Itoa(dir))
	}
	for _, own := range []string{"/proc/self/", "/proc/thread-self/", "/dev/"} {
		rest, found := strings.CutPrefix(path, own)
		if found && (rest == "exe" || strings.HasPrefix(rest, "fd/")) {
			return linkOf(thread, rest)
		}
	}
	return ""
}

// pathAt returns a path of a thread, absolute.
func pathAt(thread, dir int, cwd, path string) string {
	switch {
	case path == "" || path[0] == '/':
		return path
	case dir != unix.AT_FDCWD:
		cwd = linkOf(thread, "fd/"+strconv.Itoa(dir))
	}
	return filepath.Join(cwd, path)
}

// linkOf returns where a link in the directory of /proc of a thread leads to; "" if that cannot be read.
func linkOf(thread int, name string) string {
	to, _ := os.Readlink(fmt.Sprintf("/proc/%d/%s", thread, name))
	return to
}

// missing reports whether nothing is at a path, which begins at a directory.
func missing(root int, path string) bool {
	if path == "" {
		return true
	}
	fd, err := resolveIn(root, path, false)
	if err == nil {
		closeFD(fd)
	}
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// family returns the process of a thread, and that process's parent; the thread itself and 0 if it has ended.
func family(thread int) (pid, parent int) {
	if info, ok := pidInfoOf(thread); ok {
		return int(info.process), int(info.parent)
	}
	return familyInProc(thread)
}

// familyInProc is family by /proc.
func familyInProc(thread int) (pid, parent int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return thread, 0
	}
	number := func(name string) int {
		_, after, _ := bytes.Cut(status, []byte(name))
		line, _, _ := bytes.Cut(after, []byte("\n"))
		n, _ := strconv.Atoi(string(bytes.TrimSpace(line)))
		return n
	}
	return number("\nTgid:"), number("\nPPid:")
}

// pidInfo is the first version of struct pidfd_info.
type pidInfo struct {
	mask, cgroup            uint64
	thread, process, parent uint32
	_                       [8]uint32
	_                       uint32
}

// pidInfoOf asks the system for what /proc says of a thread, in less than half of the time. Linux before 6.13 does not know it.
func pidInfoOf(thread int) (info pidInfo, ok bool) {
	fd, err := unix.PidfdOpen(thread, unix.PIDFD_THREAD)
	if err != nil {
		return info, false
	}
	defer closeFD(fd)
	const get, ids = 0xc040ff0b, 1 // PIDFD_GET_INFO, PIDFD_INFO_PID
	info.mask = ids
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), get, uintptr(unsafe.Pointer(&info)))
	return info, errno == 0 && info.mask&ids != 0
}

const (
	pathWindow = 256 // bytes of a path that are read at once
	argBatch   = 64  // arguments that are read at once
	argWindow  = 256 // bytes of each; more of longer ones are read one by one
	argPlace   = int(unsafe.Sizeof(uintptr(0))) + 1
)

// readHead reads a path and the begin of a list of arguments, which is nil if it cannot be read.
func (c *Calls) readHead(pid int, path, list uintptr) (text string, places []byte, err error) {
	page := uintptr(os.Getpagesize())
	remote := []unix.RemoteIovec{{Base: path, Len: int(min(pathWindow, page-path%page))}}
	if list != 0 {
		remote = append(remote, unix.RemoteIovec{Base: list, Len: listLength(list)})
	}
	var b [pathWindow + argBatch*unsafe.Sizeof(list)]byte
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}, remote, 0)
	if err != nil {
		return "", nil, err
	}
	first := b[:min(n, remote[0].Len)]
	if n > len(first) {
		places = b[len(first):n]
	}
	if end := bytes.IndexByte(first, 0); end >= 0 {
		return string(first[:end]), places, nil
	}
	text, err = readText(pid, path)
	return text, places, err
}

// listLength returns how many bytes of a list are read at once: the page after its first may not be there.
func listLength(at uintptr) int {
	page := uintptr(os.Getpagesize())
	return int(min(argBatch*unsafe.Sizeof(at), page-at%page))
}

// readArgs reads a list of arguments from a process, at most MaxArgs of it, of which the begin may be known. One that cannot be read to its
// end is cut: the system cannot read it either.
func (c *Calls) readArgs(pid int, at uintptr, list []byte) (args []string, cut bool) {
	if at == 0 {
		return nil, false
	}
	size := 0
	for {
		var err error
		if list == nil {
			list, err = readMemory(pid, at, listLength(at))
		}
		if err != nil || len(list) < int(unsafe.Sizeof(at)) { // only a list that is not aligned is shorter
			return args, true
		}
		var places []uintptr
		ended := false
		for ; len(list) >= int(unsafe.Sizeof(at)) && !ended; list = list[unsafe.Sizeof(at):] {
			place := *(*uintptr)(unsafe.Pointer(&list[0]))
			if ended = place == 0; !ended {
				places = append(places, place)
			}
		}
		for i, text := range c.readBegins(pid, places) {
			room := MaxArgs - size - argPlace
			if room < 0 {
				return args, true
			}
			end := bytes.IndexByte(text, 0)
			whole := end >= 0
			if whole {
				text = text[:end]
			} else if text, whole, err = readUntil(pid, places[i], room); err != nil {
				return args, true
			}
			if len(text) > room {
				text, whole = text[:room], false
			}
			args = append(args, string(text))
			if !whole {
				return args, true
			}
			size += len(text) + argPlace
		}
		if ended {
			return args, false
		}
		at, list = at+uintptr(len(places))*unsafe.Sizeof(at), nil
	}
}

// readBegins reads the beginnings of texts in one call. One that cannot be read has none, and those after it.
func (c *Calls) readBegins(pid int, places []uintptr) [][]byte {
	if len(places) == 0 {
		return nil
	}
	if c.begins == nil {
		c.begins = make([]byte, argBatch*argWindow)
	}
	page := uintptr(os.Getpagesize())
	remote, total := make([]unix.RemoteIovec, len(places)), 0
	for i, at := range places {
		remote[i] = unix.RemoteIovec{Base: at, Len: int(min(argWindow, page-at%page))}
		total += remote[i].Len
	}
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &c.begins[0], Len: uint64(total)}}, remote, 0)
	if err != nil {
		n = 0
	}
	begins, rest := make([][]byte, len(places)), c.begins[:n]
	for i, from := range remote {
		length := min(from.Len, len(rest))
		begins[i], rest = rest[:length], rest[length:]
	}
	return begins
}
