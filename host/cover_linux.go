package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host/confine"
)

// A hidden file that another program replaces, as editors do when they save, is a new file, which nothing hides (confine.Plan.Covers). The
// host watches the directories of such files. It stops the program until a process in the program's mount namespace has hidden the
// new file.

// coverTime bounds that process.
const coverTime = 20 * time.Second

// covers watches the directories of all programs.
type covers struct {
	mu    sync.Mutex
	file  *os.File                            // inotify; nil before the first program
	names map[int]map[*Process]map[string]int // by watch, the names of interest, each with how many files need it
}

// cover is what a program needs to hide a file again.
type cover struct {
	files map[string][]string // Plan.Covers

	mu           sync.Mutex
	mounts, user *os.File // nil until the program's file tree is made
	stale        bool     // a file was replaced before that
	over         bool     // the program has ended
}

// watchCovers begins to watch for replaced files, before the file tree is made: what is replaced before that is hidden by it.
func (h *Host) watchCovers(p *Process) error {
	if p.plan == nil {
		return nil
	}
	if p.cover.files = p.plan.Covers(); len(p.cover.files) == 0 {
		return nil
	}
	c := &h.covers
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		fd, err := notifier()
		if err != nil {
			return fmt.Errorf("watch for replaced files (fs.inotify.max_user_instances bounds that): %w", err)
		}
		file := os.NewFile(uintptr(fd), "inotify")
		if !h.work(func() { h.keepCovered(file) }) {
			closeFile(file)
			return ErrClosed
		}
		c.file, c.names = file, map[int]map[*Process]map[string]int{}
	}
	return c.add(p)
}

// add watches the directories of a program. It may be called again, for those that were replaced. c.mu is locked.
func (c *covers) add(p *Process) error {
	for _, programs := range c.names {
		delete(programs, p)
	}
	for path, dirs := range p.cover.files {
		at := path
		for _, dir := range dirs {
			watch, err := c.watch(dir)
			switch {
			case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP):
				// the directory above it tells when it is there
			case err != nil:
				return fmt.Errorf("watch for replaced files (fs.inotify.max_user_watches bounds that): %w", err)
			default:
				if c.names[watch] == nil {
					c.names[watch] = map[*Process]map[string]int{}
				}
				if c.names[watch][p] == nil {
					c.names[watch][p] = map[string]int{}
				}
				c.names[watch][p][filepath.Base(at)]++
			}
			at = dir
		}
	}
	c.drop()
	return nil
}

func (c *covers) watch(dir string) (int, error) {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	watch := 0
	if controlErr := raw.Control(func(fd uintptr) {
		watch, err = unix.InotifyAddWatch(int(fd), dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
	}); controlErr != nil {
		return 0, controlErr
	}
	return watch, err
}

// drop removes the watches that no program needs. c.mu is locked.
func (c *covers) drop() {
	for watch, programs := range c.names {
		if len(programs) > 0 {
			continue
		}
		delete(c.names, watch)
		if raw, err := c.file.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(watch)) }) // the directory may be gone, and the watch with it
		}
	}
}

// forgetCovers ends the watch of a program, and closes its namespaces.
func (h *Host) forgetCovers(p *Process) {
	if len(p.cover.files) == 0 {
		return
	}
	c := &h.covers
	c.mu.Lock()
	for _, programs := range c.names {
		delete(programs, p)
	}
	c.drop()
	c.mu.Unlock()
	p.cover.mu.Lock()
	defer p.cover.mu.Unlock()
	p.cover.over = true
	p.cover.close()
}

// close closes the namespaces. c.mu is locked.
func (c *cover) close() {
	for _, file := range []*os.File{c.mounts, c.user} {
		if file != nil {
			closeFile(file)
		}
	}
	c.mounts, c.user = nil, nil
}

// keepCovered hides files that were replaced, until the host is closed.
func (h *Host) keepCovered(file *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 64<<10)
		for {
			n, err := file.Read(buffer)
			if err != nil {
				return // it is closed
			}
			again, away := h.covers.affected(buffer[:n])
			for _, a := range away {
				a.program.command.Away(a.name)
			}
			h.coverAgain(again)
		}
	}()
	<-h.closing
	closeFile(file)
	<-read
}

// away is a name of interest to a program that was taken away; "": it may have been any.
type away struct {
	program *Process
	name    string
}

// affected returns the programs whose files events have replaced, and what they have taken away. If the system has dropped some, these are
// all.
func (c *covers) affected(events []byte) (found map[*Process]bool, gone []away) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found = map[*Process]bool{}
	tell := func(p *Process, name string) {
		if p.command.Away != nil {
			gone = append(gone, away{p, name})
		}
	}
	for len(events) >= unix.SizeofInotifyEvent {
		event := (*unix.InotifyEvent)(unsafe.Pointer(&events[0]))
		end := unix.SizeofInotifyEvent + int(event.Len)
		name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")
		events = events[end:]
		switch {
		case event.Mask&unix.IN_Q_OVERFLOW != 0:
			for _, programs := range c.names {
				for p := range programs {
					found[p] = true
					tell(p, "")
				}
			}
		case event.Mask&unix.IN_IGNORED != 0:
			delete(c.names, int(event.Wd))
		default:
			for p, names := range c.names[int(event.Wd)] {
				switch {
				case !sameName(names, name):
				case event.Mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
					tell(p, name)
				default:
					found[p] = true
				}
			}
		}
	}
	return found, gone
}

// sameName reports whether a name is one of those, in a file system that may not tell cases apart.
func sameName(names map[string]int, name string) bool {
	if _, ok := names[name]; ok {
		return true
	}
	for one := range names {
		if strings.EqualFold(one, name) {
			return true
		}
	}
	return false
}

// coverAgain stops programs until what has replaced their hidden files is hidden. A program for which that fails is killed.
func (h *Host) coverAgain(programs map[*Process]bool) {
	var thaws []func()
	for p := range programs {
		thaws = append(thaws, p.Freeze())
	}
	for p := range programs {
		h.covers.mu.Lock()
		err := h.covers.add(p) // before the file is hidden: it may be replaced again
		h.covers.mu.Unlock()
		if err := errors.Join(err, p.cover.again(p.plan)); err != nil {
			p.Note("pwos: killed, since a file that is hidden from it, or that it may only read, was replaced, and the new one could not be: " + err.Error())
			p.Kill()
		}
	}
	for _, thaw := range thaws {
		thaw()
	}
}

// keep takes the namespaces of a program whose file tree is made. It runs before the program does.
func (c *cover) keep(plan *confine.Plan, handed *confine.Handed) error {
	c.mu.Lock()
	c.mounts, c.user = handed.Mounts, handed.User
	handed.Mounts, handed.User = nil, nil
	if c.over { // it was killed
		c.close()
	}
	stale := c.stale
	c.mu.Unlock()
	if !stale {
		return nil
	}
	return c.again(plan)
}

// again hides the files in the program's mount namespace.
func (c *cover) again(plan *confine.Plan) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return nil
	case c.mounts == nil:
		c.stale = true
		return nil
	}
	self, err := itself()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), coverTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = []string{coverArg, coverArg}
	cmd.ExtraFiles = []*os.File{c.mounts}
	if c.user != nil {
		cmd.Args = append(cmd.Args, joinWord)
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.user)
	}
	cmd.Args = append(cmd.Args, plan.Words()...)
	cmd.Env = shimEnv()
	cmd.Dir = "/"
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// joinWord is the first word of a process that has to enter the user namespace first.
const joinWord = "join"

// Descriptors of the process that hides files.
const (
	coverMounts = 3
	coverUser   = 4
)

// covering is the main function of the process that hides files. Its thread is locked.
func covering(words []string) int {
	if len(words) > 0 && words[0] == joinWord {
		status, err := joined(coverUser, append([]string{coverArg, coverArg}, words[1:]...))
		if err != nil {
			fmt.Println("enter user namespace:", err)
			return 1
		}
		return status
	}
	plan, err := confine.ReadPlan(words)
	if err == nil {
		err = plan.Cover(coverMounts)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// joined runs this program with these arguments in a user namespace, and returns its exit status.
//
// Only a process with a single thread can enter one, and Go can run no code between fork and exec. So this process forks itself. Nothing else
// runs in it.
func joined(user int, argv []string) (status int, err error) {
	var j join
	if j.path, err = unix.BytePtrFromString("/proc/self/exe"); err != nil {
		return 0, err
	}
	if j.argv, err = pointers(argv); err != nil {
		return 0, err
	}
	if j.env, err = pointers(shimEnv()); err != nil {
		return 0, err
	}
	j.user = uintptr(user)
	j.header.Version = unix.LINUX_CAPABILITY_VERSION_3
	for _, capability := range confine.JoinCapabilities() {
		j.data[0].Effective |= 1 << capability
	}
	j.data[0].Permitted, j.data[0].Inheritable = j.data[0].Effective, j.data[0].Effective
	copy(j.ambient[:], confine.JoinCapabilities())
	pid, errno := forked(&j)
	if errno != 0 {
		return 0, errno
	}
	var end unix.WaitStatus
	for {
		if _, err = unix.Wait4(pid, &end, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil && !end.Exited() {
		err = errors.New("the process was killed")
	}
	if err == nil && end.ExitStatus() > joinFailed {
		return 0, unix.Errno(end.ExitStatus() - joinFailed)
	}
	return end.ExitStatus(), err
}

// joinFailed is added to the number of the error with which the child ends if it cannot execute the program.
const joinFailed = 100

func pointers(words []string) ([]*byte, error) {
	list := make([]*byte, len(words)+1)
	for i, word := range words {
		var err error
		if list[i], err = unix.BytePtrFromString(word); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// join has what the child needs, which must not allocate.
type join struct {
	user      uintptr
	header    unix.CapUserHeader
	data      [2]unix.CapUserData
	ambient   [2]uintptr
	path      *byte
	argv, env []*byte
}

// become enters the user namespace, keeps the capabilities over execve, and executes the program.
//
//go:norace
//go:nosplit
func (j *join) become() {
	afterForkInChild()
	_, _, errno := unix.RawSyscall(unix.SYS_SETNS, j.user, unix.CLONE_NEWUSER, 0)
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&j.header)), uintptr(unsafe.Pointer(&j.data[0])), 0)
	}
	for i := 0; i < len(j.ambient) && errno == 0; i++ {
		_, _, errno = unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, j.ambient[i], 0, 0, 0)
	}
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(j.path)), uintptr(unsafe.Pointer(&j.argv[0])), uintptr(unsafe.Pointer(&j.env[0])))
	}
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, joinFailed+uintptr(errno), 0, 0)
	}
}

// notifier opens an inotify instance. A user has few, 128 on most machines: if all are in use, it waits a while for one.
func notifier() (fd int, err error) {
	for end := time.Now().Add(instanceTime); ; time.Sleep(instanceTime / 100) {
		fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if !errors.Is(err, unix.EMFILE) || time.Now().After(end) {
			return fd, err
		}
	}
}

// instanceTime is how long a start waits for an inotify instance.
const instanceTime = 20 * time.Second
