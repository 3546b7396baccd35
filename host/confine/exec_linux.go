package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// look reads what a process wants to execute.
func (c *Calls) look(call *notification) *Exec {
	thread := int(call.pid)
	e := &Exec{Time: time.Now(), Thread: thread}
	if c.search.thread != thread {
		c.search.pid, c.search.parent = family(thread)
	}
	e.PID, e.Parent = c.search.pid, c.search.parent
	c.search.thread = 0
	e.Program = linkOf(thread, "exe")
	dir, at, args := unix.AT_FDCWD, uintptr(call.args[0]), uintptr(call.args[1])
	if call.number == unix.SYS_EXECVEAT {
		dir, at, args = int(int32(call.args[0])), uintptr(call.args[1]), uintptr(call.args[2])
	}
	path, err := readText(thread, at)
	if errors.Is(err, unix.EPERM) {
		e.Hidden = true
		return e
	}
	e.Dir = linkOf(thread, "cwd")
	e.Args, e.Cut = c.readArgs(thread, args)
	if e.Path = openedAt(thread, dir, path); e.Path == "" {
		e.Path = pathAt(thread, dir, e.Dir, path)
		if e.Missing = missing(thread, e.Path); e.Missing { // a search in PATH goes on, in the same process
			c.search.thread = thread
		}
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

// missing reports whether nothing is at a path for a process.
func missing(pid int, path string) bool {
	if path == "" {
		return true
	}
	fd, err := resolve(pid, path, false)
	if err == nil {
		closeFD(fd)
	}
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// family returns the process of a thread, and that process's parent; the thread itself and 0 if it has ended.
func family(thread int) (pid, parent int) {
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

const (
	argBatch  = 64  // arguments that are read at once
	argWindow = 256 // bytes of each; more of longer ones are read one by one
	argPlace  = int(unsafe.Sizeof(uintptr(0))) + 1
)

// readArgs reads a list of arguments from a process, at most MaxArgs of it. One that cannot be read to its end is cut: the system cannot
// read it either.
func (c *Calls) readArgs(pid int, at uintptr) (args []string, cut bool) {
	if at == 0 {
		return nil, false
	}
	page := uintptr(os.Getpagesize())
	size := 0
	for {
		length := min(uintptr(argBatch)*unsafe.Sizeof(at), page-at%page) // the next page may not be there
		list, err := readMemory(pid, at, int(length))
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
		at += uintptr(len(places)) * unsafe.Sizeof(at)
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
