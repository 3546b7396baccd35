package steps

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// watch knows which directories had an event since they were asked for.
type watch struct {
	file *os.File
	conn syscall.RawConn
	done chan struct{}

	mu     sync.Mutex
	paths  map[int32]string // by the number of the watch
	wds    map[string]int32
	dirty  map[string]names
	seen   uint64 // number of events
	lost   bool   // events were lost: any directory may have had one
	err    error  // why there are no watches, or not enough
	closed bool
}

// events are those after which a directory is listed again.
const events = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

func newWatch() *watch {
	w := &watch{paths: make(map[int32]string), wds: make(map[string]int32), dirty: make(map[string]names), done: make(chan struct{})}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.err = fmt.Errorf("watch directories: %w", err)
		close(w.done)
		return w
	}
	w.file = os.NewFile(uintptr(fd), "inotify")
	if w.conn, err = w.file.SyscallConn(); err != nil {
		w.err = fmt.Errorf("watch directories: %w", err)
		close(w.done)
		return w
	}
	go w.run()
	return w
}

// run keeps the system's queue empty, since what does not fit is lost.
func (w *watch) run() {
	defer close(w.done)
	_ = w.conn.Read(func(fd uintptr) bool { // it ends when the file is closed
		w.mu.Lock()
		defer w.mu.Unlock()
		w.drain(fd)
		return w.closed
	})
}

// drain reads all events that there are.
func (w *watch) drain(fd uintptr) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(int(fd), buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for b := buffer[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			next := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:next], []byte{0})
			b = b[next:]
			path, known := w.paths[wd]
			w.seen++
			switch {
			case mask&unix.IN_Q_OVERFLOW != 0:
				w.lost = true
			case !known:
			case mask&unix.IN_IGNORED != 0:
				w.forget(wd, path)
			default:
				w.dirty[path] = w.dirty[path].with(string(name))
			}
		}
	}
}

func (w *watch) forget(wd int32, path string) {
	delete(w.paths, wd)
	if w.wds[path] == wd {
		delete(w.wds, path)
	}
}

// take returns the directories that had an event, with the names in them that it was for, and whether any other may have had one.
func (w *watch) take() (dirty map[string]names, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return nil, true
	}
	_ = w.conn.Control(func(fd uintptr) { w.drain(fd) })
	dirty, all = w.dirty, w.lost
	w.dirty, w.lost = make(map[string]names), false
	return dirty, all
}

// add watches a directory, which must happen before it is listed.
func (w *watch) add(path string, dir *os.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	var n int
	var err error
	controlErr := w.conn.Control(func(fd uintptr) {
		n, err = unix.InotifyAddWatch(int(fd), fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), events)
	})
	if err = errors.Join(err, controlErr); err != nil {
		w.err = fmt.Errorf("watch %s: %w", path, err)
		return
	}
	wd := int32(n)
	if old, ok := w.paths[wd]; ok && old != path {
		delete(w.wds, old)
	}
	w.paths[wd], w.wds[path] = path, wd
}

// remove ends the watch of a directory that is gone from a path. One that was moved is watched where it is now.
func (w *watch) remove(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wd, ok := w.wds[path]
	if !ok || w.err != nil {
		return
	}
	w.forget(wd, path)
	_ = w.conn.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(wd)) }) // it ends by itself if the directory was removed
}

// has reports whether a directory is watched.
func (w *watch) has(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.wds[path]
	return ok
}

// count returns the number of events, and whether all directories are watched.
func (w *watch) count() (uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen, w.err == nil
}

// why returns why directories are not watched, or nil.
func (w *watch) why() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *watch) Close() error {
	if w.file == nil {
		return nil
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	err := w.file.Close()
	<-w.done
	return err
}
