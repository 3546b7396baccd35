package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host/confine"
)

// Probe finds the means to confine programs. A separate process tries them, since some systems allow a namespace and refuse
// what is needed in it. If user 0 may not create namespaces, a user namespace may allow it.
func Probe() (Means, error) {
	if !shimmed.Load() || os.Getenv(childVar) != "" {
		return Means{}, errNoShim
	}
	tried, err := try(false)
	user := false
	if err == nil && tried == 0 {
		user = true
		if tried, err = try(true); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) ||
			errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EUSERS) {
			tried, err = 0, nil // this user may not create user namespaces
		}
	}
	if err != nil {
		return Means{}, fmt.Errorf("try namespaces: %w", err)
	}
	return confine.With(tried, user), nil
}

// try runs a process that creates namespaces, in a user namespace or without.
func try(user bool) (int, error) {
	self, err := itself()
	if err != nil {
		return 0, err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer closeFile(ours)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		closeFile(theirs)
		return 0, err
	}
	defer closeFile(null)
	attr := &syscall.ProcAttr{
		Dir: "/", Env: shimEnv(), Files: []uintptr{null.Fd(), theirs.Fd(), null.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	if user {
		userNamespace(attr.Sys)
	}
	newPIDs(attr.Sys)
	pid, err := syscall.ForkExec(self, []string{probeArg, probeArg}, attr)
	if err != nil { // without PID namespaces
		attr.Sys.Cloneflags &^= unix.CLONE_NEWPID
		pid, err = syscall.ForkExec(self, []string{probeArg, probeArg}, attr)
	}
	closeFile(theirs)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(ours)
	for {
		if _, waitErr := syscall.Wait4(pid, nil, 0, nil); !errors.Is(waitErr, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	tried, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, errNoShim
	}
	return tried, nil
}

// userNamespace makes attr start a process in a user namespace with the privileges there that confine.Plan.Enter needs, and
// with the same user and group.
func userNamespace(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.AmbientCaps = confine.Capabilities()
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
}

// probed is the main function of the process that tries the means.
func probed() int {
	fmt.Print(confine.Try())
	return 0
}

// replaced returns the process that a shim has started to replace itself, after that shim has ended; or the shim itself if
// it failed, which it reports by its status. tells is the daemon's copy of the shim's end of born.
func replaced(shim *watched, born, tells *os.File) (*watched, error) {
	closeFile(tells) // so that the pipe ends with the shim
	text, err := io.ReadAll(born)
	if err != nil || len(text) == 0 {
		return shim, err
	}
	shim.wait()
	shim.reap()
	w := &watched{}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return nil, fmt.Errorf("shim said %q: %w", text, err)
	}
	// It is a child of this process, so its number is not reused before it is reaped.
	if w.fd, err = unix.PidfdOpen(pid, 0); err != nil {
		return nil, err
	}
	return w, w.begin(pid)
}
