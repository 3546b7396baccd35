package agents_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// Numbers of Linux that package syscall does not define; they are the same on all machines.
const (
	pidfdOpen  = 434
	pidfdGetfd = 438
)

// most is how many descriptors of a process are tried, which is more than a daemon of these tests has.
const most = 256

// pry searches descriptors for another identity: in those that it inherited, in those of the given processes, and in those
// of its parent. It stores the outcome.
func pry(args []string) int {
	first := inherited() // before it has opened anything
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	var said strings.Builder
	own := []int{0, 1}
	if os.Getenv("PWOS_FD") != "" {
		own = []int{3}
	}
	for _, d := range first {
		fmt.Fprintf(&said, "inherited: %d %s\n", d.number, d.kind)
		if !slices.Contains(own, d.number) {
			fmt.Fprintf(&said, "through %d: %s\n", d.number, through(d.number))
		}
	}
	told, err := c.tries()
	if err != nil {
		return failed(err)
	}
	said.WriteString(told)
	said.WriteString(heirs())
	for _, arg := range append(args[1:], fmt.Sprint("parent=", os.Getppid())) {
		who, number, _ := strings.Cut(arg, "=")
		pid, _ := strconv.Atoi(number)
		for _, line := range reach(pid) {
			fmt.Fprintf(&said, "%s: %s\n", who, line)
		}
	}
	if err := tell(args[0], said.String()); err != nil {
		return failed(err)
	}
	return 0
}

// open is a descriptor of this process.
type open struct {
	number int
	kind   string // pipe, socket, or a path
}

// inherited lists the descriptors that this program has not opened itself. Those that Go opens have close-on-exec, and a
// descriptor with that does not survive execve.
func inherited() (all []open) {
	for n := range most {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(n), syscall.F_GETFD, 0)
		if errno != 0 || flags&syscall.FD_CLOEXEC != 0 {
			continue
		}
		link, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", n))
		kind, _, _ := strings.Cut(link, ":")
		all = append(all, open{n, kind})
	}
	return all
}

// through sends a frame to the kernel over a descriptor, and returns the answer. Only a kernel would make it wait.
func through(n int) string {
	_, wrote := syscall.Write(n, []byte(`{"kind":"reply","type":"Syscall.Authenticate","data":null}`+"\n"+
		`{"kind":"query","type":"Syscall.Ping","data":{"payload":"through"},"metadata":{"id":"t","timestamp":1}}`+"\n"))
	answer := make(chan string, 1)
	go func() {
		var buf [4096]byte
		got, err := syscall.Read(n, buf[:])
		switch {
		case err != nil:
			answer <- "read " + err.Error()
		case got == 0:
			answer <- "read EOF"
		default:
			answer <- fmt.Sprintf("answered %q", buf[:got])
		}
	}()
	select {
	case a := <-answer:
		return fmt.Sprintf("write %v, %s", wrote, a)
	case <-time.After(testkit.Patience / 2):
		return fmt.Sprintf("write %v, no answer", wrote)
	}
}

// heirs starts a child with the same descriptors that tries the channel, and returns its result.
func heirs() string {
	child := exec.Command("/proc/self/exe", "inherit")
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	if os.Getenv("PWOS_FD") != "" {
		child.ExtraFiles = []*os.File{os.NewFile(3, "channel")}
	}
	err := child.Run()
	text, readErr := os.ReadFile("heir")
	said := fmt.Sprintf("heir: ended with %v, %v\n", err, readErr)
	for line := range strings.Lines(string(text)) {
		said += "heir: " + line
	}
	return said
}

// inherit continues on a channel whose prologue its parent has completed.
func inherit([]string) int {
	in, out := os.Stdin, os.Stdout
	if os.Getenv("PWOS_FD") != "" {
		in = os.NewFile(3, "channel")
		out = in
	}
	told, err := resume(in, out).tries()
	if err == nil {
		err = tell("heir", told)
	}
	if err != nil {
		return failed(err)
	}
	return 0
}

// reach tries each way to get the open files of another process, and returns each outcome once. Listing their numbers does
// not count as access.
func reach(pid int) (outcomes []string) {
	note := func(how string, err error, got func() string) {
		text := fmt.Sprintf("%s: %v", how, err)
		if err == nil {
			text = how + ": GOT " + got()
		}
		if !slices.Contains(outcomes, text) {
			outcomes = append(outcomes, text)
		}
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	there, err := os.ReadDir(dir)
	outcomes = append(outcomes, fmt.Sprintf("has: %d, %v", len(there), err))
	for n := range most {
		path := fmt.Sprintf("%s/%d", dir, n)
		for _, mode := range []int{os.O_RDWR, os.O_RDONLY, os.O_WRONLY} {
			fd, err := syscall.Open(path, mode|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
			note("open", err, func() string { return linkOf(fd) })
			if err == nil {
				_ = syscall.Close(fd)
			}
		}
		conn, err := net.Dial("unix", path)
		note("connect", because(err), func() string { _ = conn.Close(); return path })
	}
	process, _, errno := syscall.Syscall(pidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		note("pidfd", errno, nil)
		return outcomes
	}
	defer syscall.Close(int(process))
	for n := range most {
		fd, _, errno := syscall.Syscall(pidfdGetfd, process, uintptr(n), 0)
		if errno != 0 {
			note("take", errno, nil)
			continue
		}
		note("take", nil, func() string { return linkOf(int(fd)) })
		_ = syscall.Close(int(fd))
	}
	return outcomes
}

func linkOf(fd int) string {
	link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return err.Error()
	}
	return link
}

// because returns the system's reason for an error.
func because(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}
