package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
)

// helpers returns the programs that this binary runs if its first argument names one.
func helpers() map[string]func([]string) int {
	return map[string]func([]string) int{
		"t-orphan": orphan, "t-orphan-2": orphan2, "t-idle": idle, "t-daemon": daemon,
		"t-files": openFiles, "t-memory": takeMemory, "t-write": writeFiles, "t-send": sendSignal, "t-limit": setLimit, "t-frame": frame, "t-spoil-told": spoilTold,
		"t-secrets": secretsOf, "t-veils": veilsOf, "t-read-all": readAll, "t-reach": reach, "t-unix": dialUnix, "t-unix-own": ownUnix, "t-probe": probe, "t-dial": dialOut, "t-ports": servePorts, "t-echo": echoServer, "t-probes": probesAs, "t-probes-with": probesWith, "t-mount": mountTmpfs, "t-trace": trace, "t-connect": connect, "t-bomb": bomb, "t-fd3": echoFD3, "t-lonely": lonely, "t-sibling": sibling, "t-leaves": leaves, "t-traced": traced, "t-execs": execs,
		"pwos-host-guard": noShim, "pwos-host-shim": noShim,
	}
}

// said prints the outcome of an operation.
func said(what string, err error) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
		return
	}
	fmt.Printf("%s: ok\n", what)
}

// again starts a helper in a separate session without waiting for it.
func again(args ...string) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return os.StartProcess("/proc/self/exe", append([]string{"helper"}, args...), &os.ProcAttr{
		Files: []*os.File{null, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// orphan forks twice, each time into a new session, so that t-idle is an orphan. "stay" and "cling" continue, "go" ends.
func orphan(args []string) int {
	p, err := again("t-orphan-2", args[0])
	if err != nil {
		return 1
	}
	if _, err := p.Wait(); err != nil {
		return 1
	}
	switch args[1] {
	case "cling": // it removes the parent-death signal that it was given
		if !onMain || unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) != nil {
			return 1
		}
		go executeLater(args[0])
		return idle([]string{args[0] + ".clings"})
	case "stay":
		return idle(nil)
	}
	return 0
}

// executeLater executes a program once a file is there, and writes its outcome into another.
func executeLater(path string) {
	for {
		if _, err := os.Lstat(path + ".execute"); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	said := "ok"
	if err := exec.Command("/bin/true").Run(); err != nil {
		said = err.Error()
	}
	if os.WriteFile(path+".part", []byte(said), 0o600) == nil {
		_ = os.Rename(path+".part", path+".executed") // without it the test fails
	}
}

func orphan2(args []string) int {
	if _, err := again("t-idle", args[0]); err != nil {
		return 1
	}
	return 0
}

// idle writes its number to a file and does nothing, and ignores all signals except for KILL.
func idle(args []string) int {
	if len(args) > 0 {
		if err := writeNumber(args[0]); err != nil {
			return 1
		}
	}
	time.Sleep(time.Hour)
	return 0
}

// writeNumber atomically writes this process's number to a file.
func writeNumber(path string) error {
	if err := os.WriteFile(path+".part", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// onMain keeps the first steps of a helper on the first thread: the parent-death signal belongs to a thread, and only that
// thread can remove it.
var onMain = func() bool {
	if len(os.Args) < 2 || os.Args[1] != "t-orphan" {
		return false // what is tested runs on the same threads as elsewhere
	}
	runtime.LockOSThread()
	return true
}()

// daemon hosts an agent, reports that, and waits to be killed.
func daemon(args []string) int {
	options := host.Options{Instance: args[0]}
	if len(args) > 2 && args[2] == "true" {
		means, err := host.Probe()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		means.PIDs = false
		options.Means = &means
	}
	h, err := host.New(options)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	dir := args[1]
	for _, how := range []string{"stay", "cling"} {
		p, err := h.Start(context.Background(), host.Command{
			Argv: []string{"/proc/self/exe", "t-orphan", filepath.Join(dir, "orphan-"+how), how}, Dir: dir, PID: 1,
			Exec: func(context.Context, *host.Exec) syscall.Errno { return 0 },
		})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(p.OSPID())
	}
	time.Sleep(time.Hour)
	return 0
}

// frame breaks the mark that each of the given processes would have, and then its own.
func frame(args []string) int {
	for _, arg := range append(args, "0") {
		pid, err := strconv.Atoi(arg)
		if err == nil {
			err = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{}, nil)
		}
		if err != nil {
			said("limit", err)
			return 1
		}
	}
	return idle(nil)
}

// spoilTold leaves a process that ignores TERM, and breaks its own mark when it gets TERM itself.
func spoilTold([]string) int {
	signal.Ignore(unix.SIGTERM)
	if _, err := os.StartProcess("/bin/sleep", []string{"sleep", "3600"}, &os.ProcAttr{}); err != nil {
		said("start", err)
		return 1
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM)
	fmt.Println("ready")
	<-told
	return frame(nil)
}

// openFiles opens files until it fails.
func openFiles([]string) int {
	for n := 0; ; n++ {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
			said(fmt.Sprintf("opened at most %d", 10*(n/10+1)), err)
			return 0
		}
	}
}

// takeMemory maps private memory until it fails.
func takeMemory([]string) int {
	const step = 1 << 20
	for n := 0; n < 4096; n++ {
		b, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			said("memory", err)
			return 0
		}
		b[0] = 1
	}
	return 1
}

// writeFiles does with each path what the word before it says.
func writeFiles(args []string) int {
	for i := 0; i+1 < len(args); i += 2 {
		what, path := args[i], args[i+1]
		said(what, write(what, path))
	}
	return 0
}

func write(what, path string) error {
	switch what {
	case "write":
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteString("x")
		}
		return err
	case "truncate":
		return os.Truncate(path, 0)
	case "mkdir":
		return os.Mkdir(path, 0o700)
	case "remove":
		return os.Remove(path)
	case "link":
		return os.Link(path, path+".linked")
	case "symlink":
		return os.Symlink("/", path)
	case "rename":
		return os.Rename(path, path+".moved")
	case "read":
		_, err := os.ReadFile(path)
		return err
	case "adopt": // rename a file from outside into the directory
		return os.Rename(path, filepath.Base(path))
	}
	return os.ErrInvalid
}

// sendSignal signals a process.
func sendSignal(args []string) int {
	pid, _ := strconv.Atoi(args[0])
	said("signal", unix.Kill(pid, 0))
	return 0
}

// trace attaches to a process like a debugger.
func trace(args []string) int {
	pid, _ := strconv.Atoi(args[0])
	said("trace", unix.PtraceSeize(pid))
	_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	said("environ", err)
	byte1 := []byte{0}
	local := []unix.Iovec{{Base: &byte1[0], Len: 1}}
	_, err = unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&byte1[0])), Len: 1}}, 0)
	said("memory", notHere(err))
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		_, err = unix.PidfdGetfd(fd, 0, 0)
	}
	said("descriptor", err)
	return 0
}

// notHere returns nil for the error of a write that was permitted, to an address that the other process has not mapped.
func notHere(err error) error {
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

// setLimit tries to get the mark of another agent, or of no agent.
func setLimit(args []string) int {
	n, _ := strconv.ParseUint(args[1], 10, 64)
	if len(args) > 2 { // a process that breaks it may be killed before it can report
		if err := writeNumber(args[2]); err != nil {
			return 1
		}
		for {
			if _, err := os.Stat(args[2]); err != nil {
				break // the test removes the file when it has read it
			}
			time.Sleep(time.Millisecond)
		}
	}
	which := map[string]int{"locks": unix.RLIMIT_LOCKS, "rss": unix.RLIMIT_RSS}[args[0]]
	said("limit", unix.Prlimit(0, which, &unix.Rlimit{Cur: n, Max: n}, nil))
	if len(args) > 2 {
		return idle(nil)
	}
	return 0
}

// connect connects to a socket and keeps the connection open.
func connect(args []string) int {
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		said("connect", err)
		return 1
	}
	defer conn.Close()
	_, _ = io.Copy(io.Discard, conn)
	return 0
}

// bomb is a fork bomb: each process starts others, in new sessions, and continues. It ends after a while, in case that
// nothing stops it.
func bomb(args []string) int {
	depth, _ := strconv.Atoi(args[0])
	for range 4 {
		if depth > 0 {
			_, _ = again("t-bomb", strconv.Itoa(depth-1))
		}
	}
	return idle(nil)
}

// noShim is a hosting program that does not call Shim.
func noShim([]string) int {
	_, err := host.New(host.Options{})
	said("host", err)
	return 1
}

// sibling makes t-idle a child of its own parent, the daemon.
func sibling(args []string) int {
	if _, err := os.StartProcess("/proc/self/exe", []string{"helper", "t-idle", args[0]}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT},
	}); err != nil {
		fmt.Println(err)
		return 1
	}
	return idle(nil)
}

// leaves leaves its process group for that of a child, and ends with a status of its own when it is told.
func leaves([]string) int {
	child, err := os.StartProcess("/proc/self/exe", []string{"helper", "t-idle"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err == nil {
		err = syscall.Setpgid(0, child.Pid)
	}
	if err != nil {
		said("leave", err)
		return 1
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	fmt.Println("on")
	<-told
	return 5
}

// echoFD3 answers on the channel that PWOS_FD names.
func echoFD3([]string) int {
	fd, err := strconv.Atoi(os.Getenv("PWOS_FD"))
	if err != nil {
		return 1
	}
	channel := os.NewFile(uintptr(fd), "channel")
	fmt.Println("on stdout")
	fmt.Fprintln(os.Stderr, "on stderr")
	n, err := io.Copy(os.Stdout, os.Stdin)
	if err != nil || n != 0 {
		return 2
	}
	if _, err := io.Copy(channel, channel); err != nil {
		return 3
	}
	return 0
}

// lonely ends its first thread and continues in another: /proc shows it as a zombie.
func lonely(args []string) int {
	// Work that the runtime has on that thread is lost with it; with one processor, that is everything.
	if err := writeNumber(args[0]); err != nil {
		return 1
	}
	// The goroutine of main need not be on the first thread, since TestMain does not lock it: the goroutine that is on the
	// first thread ends it.
	for range 64 {
		go func() {
			for {
				if unix.Gettid() == os.Getpid() {
					unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	for {
		if unix.Gettid() == os.Getpid() {
			unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		time.Sleep(time.Millisecond)
	}
}
