package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// forked has the numbers of processes, and the PID namespace in which these are their numbers.
type forked struct {
	Place   string
	Numbers []int
}

// forking has a child, an orphan, and an orphan's orphan, which all ignore TERM, and stores their numbers.
func forking([]string) int {
	signal.Ignore(syscall.SIGTERM)
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	child, err := again("deaf")
	if err != nil {
		return failed(err)
	}
	numbers := []int{os.Getpid(), child.Pid}
	for range 2 {
		text, err := forkTwice("deaf")
		if err != nil {
			return failed(err)
		}
		n, _ := strconv.Atoi(text)
		numbers = append(numbers, n)
	}
	place, _ := os.Readlink("/proc/self/ns/pid") // fails on other systems, always
	if err := c.note("forked/"+os.Getenv("PWOS_PID"), forked{place, numbers}); err != nil {
		return failed(err)
	}
	return idle(nil)
}

// intrude starts an intruder at a given distance in descent, and waits for its result.
func intrude(args []string) int {
	how, socket := args[0], args[1]
	said := "intruder"
	switch how {
	case "itself":
		return intruder([]string{socket, said})
	case "child":
		if out, err := exec.Command("/proc/self/exe", "intruder", socket, said).CombinedOutput(); err != nil {
			return failed(fmt.Errorf("%w: %s", err, out))
		}
	case "orphan":
		if _, err := forkTwice("intruder", socket, said); err != nil {
			return failed(err)
		}
		for end := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(said); err == nil {
				return 0
			}
			if time.Now().After(end) {
				return failed(fmt.Errorf("the orphan printed nothing"))
			}
		}
	}
	return 0
}

// intruder connects to the kernel's socket and tries to exceed its authority.
func intruder(args []string) int {
	c, err := dialSocket(args[0])
	if err != nil {
		return failed(err)
	}
	said, err := c.tries()
	if err == nil {
		err = tell(args[1], said)
	}
	if err != nil {
		return failed(err)
	}
	return 0
}

// tries queries its identity, tries to exceed its authority, and returns the answers.
func (c *client) tries() (string, error) {
	var said strings.Builder
	f, err := c.call("query", "Syscall.Ping", `{"payload":1}`)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&said, "ping: pid %d\n", f.Metadata.Kernel.PID)
	for _, try := range []struct{ what, kind, typ, data string }{
		{"shutdown", "command", "Syscall.Shutdown", `{}`},
		{"as the operator", "command", "Syscall.SendMsg", `{"pid":0,"receiver_pid":1,"payload":1}`},
		{"as another", "command", "Syscall.SendMsg", `{"pid":1,"receiver_pid":1,"payload":1}`},
		{"terminate another", "command", "Syscall.Terminate", `{"target_pid":1}`},
		{"approve", "command", "Approval.Decide", `{"id":"q-1","decision":"approve"}`},
	} {
		_, err := c.call(try.kind, try.typ, try.data)
		fmt.Fprintf(&said, "%s: %v\n", try.what, err)
	}
	return said.String(), nil
}

// tell atomically writes a text to a file in the working directory.
func tell(name, text string) error {
	part := name + ".part"
	if err := os.WriteFile(part, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(part, name)
}

// trespass writes outside its directory and signals the daemon, and stores its outcome.
func trespass(args []string) int {
	daemon, _ := strconv.Atoi(args[1])
	said := fmt.Sprintf("write: %v\nsignal: %v\n",
		os.WriteFile(args[0], nil, 0o600), syscall.Kill(daemon, syscall.SIGWINCH))
	if err := os.WriteFile(filepath.Join(os.Getenv("HOME"), "trespasser"), []byte(said), 0o600); err != nil {
		return failed(err)
	}
	return 0
}

// spoil lowers a limit by which the kernel recognizes its processes.
func spoil([]string) int {
	const locks = 10 // RLIMIT_LOCKS, which package syscall does not define
	if err := syscall.Setrlimit(locks, &syscall.Rlimit{}); err != nil {
		return failed(err)
	}
	return idle(nil)
}

// loosen tries to spawn a process with fewer restrictions than its own.
func loosen([]string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	for _, more := range []string{
		`"sandbox":"off","limits":{"open_files":64}`, `"cwd":"/","limits":{"open_files":64}`, `"limits":{"open_files":65}`, `"restart":"never"`,
	} {
		f, err := c.call("command", "Syscall.Spawn", `{"child_agent_id":"freer","command":["/bin/true"],`+more+`}`)
		if fault, ok := err.(*kernelError); !ok || fault.Code != 403 {
			return failed(fmt.Errorf("%s: %s, %v", more, f.Data, err))
		}
	}
	f, err := c.call("command", "Syscall.Spawn", `{"child_agent_id":"as tight","command":["/bin/true"],"limits":{"open_files":64}}`)
	if err != nil {
		return failed(fmt.Errorf("%s: %w", f.Data, err))
	}
	return 0
}

// flood sends requests of some size as fast as it can, and reads the answers.
func flood(args []string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	size, _ := strconv.Atoi(args[0])
	data := fmt.Sprintf(`{"payload":%q}`, strings.Repeat("p", size))
	go func() {
		for {
			if _, err := c.next(); err != nil {
				return
			}
		}
	}()
	for {
		if err := c.send("query", "Syscall.Ping", data); err != nil {
			return failed(err)
		}
	}
}

// unread sends requests without reading an answer.
func unread([]string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	for {
		if err := c.send("query", "Syscall.Ping", `{"payload":1}`); err != nil {
			return failed(err)
		}
	}
}

// garbage prints invalid frames, and reads nothing.
func garbage([]string) int {
	line := []byte(strings.Repeat("\x00\xffgarbage", 1000) + "\n")
	for {
		if _, err := os.Stdout.Write(line); err != nil {
			return failed(err)
		}
	}
}

// half prints half a line and stops.
func half([]string) int {
	fmt.Print(`{"kind":"reply","type":"Sysc`)
	return idle(nil)
}

// shut closes its output and continues.
func shut([]string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	if err := c.send("query", "Syscall.Ping", `{"payload":7}`); err != nil {
		return failed(err)
	}
	_ = os.Stdout.Close()
	if f, err := c.next(); err != nil || string(f.Data) != `{"payload":7}` {
		return failed(fmt.Errorf("the answer after the end of output is %s, %v", f.Data, err))
	}
	return idle(nil)
}

// eat takes memory until it fails.
func eat([]string) int {
	for all := []byte{1}; ; all = append(all, all...) {
		fmt.Fprintln(os.Stderr, len(all))
	}
}

// silent completes the prologue and reads nothing more.
func silent([]string) int {
	if _, err := channel(); err != nil {
		return failed(err)
	}
	return idle(nil)
}
