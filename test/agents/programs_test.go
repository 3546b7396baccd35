package agents_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// agentPrograms returns the agents that this binary runs if its first argument names one. Each returns its exit code.
func agentPrograms() map[string]func([]string) int {
	return map[string]func([]string) int{
		"ping": ping, "idle": idle, "exit": exit, "signal": signalSelf, "bomb": bomb, "loud": loud,
		"stubborn": stubborn, "orphan": orphan, "deaf": deaf, "parent": parent,
		"forking": forking, "intrude": intrude, "intruder": intruder, "pry": pry, "inherit": inherit, "trespass": trespass, "loosen": loosen,
		"flood": flood, "garbage": garbage, "half": half, "shut": shut, "eat": eat, "unread": unread,
		"silent": silent, "chat": chat,
		"witness": witness, "hasty": hasty, "doze": doze, "bequeath": bequeath, "heir": heir, "spoil": spoil, "gorge": gorge,
		"leave": leave, "besiege": besiege, "besieger": besieger, "refused": refused, "hoard": hoard,
	}
}

// channel returns an agent's connection to the kernel.
func channel() (*client, error) {
	if fd := os.Getenv("PWOS_FD"); fd != "" {
		n, err := strconv.Atoi(fd)
		if err != nil {
			return nil, err
		}
		file := os.NewFile(uintptr(n), "channel")
		return greet(file, file)
	}
	return greet(os.Stdin, os.Stdout)
}

// failed logs why an agent failed.
func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// note stores a value where the test finds it.
func (c *client) note(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = c.call("command", "Memory.Set", fmt.Sprintf(`{"key":%q,"value":%s}`, key, raw))
	return err
}

// ping queries its identity from the kernel, stores it and ends.
func ping([]string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	f, err := c.call("query", "Syscall.Ping", `{"payload":[1,2]}`)
	if err != nil {
		return failed(err)
	}
	if string(f.Data) != `{"payload":[1,2]}` {
		return failed(fmt.Errorf("ping said %s", f.Data))
	}
	if err := c.note("pinged", f.Metadata.Kernel.PID); err != nil {
		return failed(err)
	}
	return 0
}

// idle does nothing.
func idle([]string) int {
	time.Sleep(time.Hour)
	return 0
}

// exit ends with the given code.
func exit(args []string) int {
	code, _ := strconv.Atoi(args[0])
	return code
}

// signalSelf ends with a signal.
func signalSelf(args []string) int {
	n, _ := strconv.Atoi(args[0])
	_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
	return idle(nil)
}

// loud writes to its log.
func loud(args []string) int {
	fmt.Fprint(os.Stderr, args[0])
	return 0
}

// again starts this binary as another program in a separate session, without waiting for it.
func again(args ...string) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return os.StartProcess("/proc/self/exe", append([]string{"again"}, args...), &os.ProcAttr{
		Files: []*os.File{null, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// bomb starts more and more processes.
func bomb([]string) int {
	for range 20 {
		if _, err := again("idle"); err != nil {
			return failed(err)
		}
	}
	return idle(nil)
}

// orphan starts a program and ends, so that the program is an orphan. It prints the program's number.
func orphan(args []string) int {
	p, err := again(args...)
	if err != nil {
		return failed(err)
	}
	fmt.Println(p.Pid)
	return 0
}

// forkTwice starts a program through another that ends immediately, and returns its number.
func forkTwice(args ...string) (string, error) {
	out, err := exec.Command("/proc/self/exe", append([]string{"orphan"}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}

// deaf ignores TERM.
func deaf([]string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	return idle(nil)
}

// stubborn ignores TERM, and has an orphan that also does.
func stubborn([]string) int {
	signal.Ignore(syscall.SIGTERM)
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	number, err := forkTwice("deaf")
	if err != nil {
		return failed(err)
	}
	if err := c.note("orphan", number); err != nil {
		return failed(err)
	}
	if err := c.note("own", strconv.Itoa(os.Getpid())); err != nil {
		return failed(err)
	}
	return idle(nil)
}

// parent has a child with a program, and ends itself when it is told to.
func parent(args []string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	f, err := c.call("command", "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"child","command":[%q,"idle"]}`, args[0]))
	if err != nil {
		return failed(err)
	}
	var child struct {
		PID int64 `json:"child_pid"`
	}
	if err := json.Unmarshal(f.Data, &child); err != nil {
		return failed(err)
	}
	if err := c.note("child", child.PID); err != nil {
		return failed(err)
	}
	for {
		if _, err := c.call("query", "Memory.Get", `{"key":"go"}`); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_, err = c.call("command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%s}`, os.Getenv("PWOS_PID")))
	if err != nil {
		return failed(err)
	}
	return idle(nil)
}

// leave ends itself, and exits only after the answer.
func leave([]string) int {
	signal.Ignore(syscall.SIGTERM)
	c, err := channel()
	if err == nil {
		_, err = c.call("command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%s}`, os.Getenv("PWOS_PID")))
	}
	if err != nil {
		return failed(err)
	}
	return 7
}

// doze ends after a while.
func doze([]string) int {
	time.Sleep(time.Second)
	return 0
}

// hasty sends many frames at the same time, and ends without waiting for an answer. Every other frame goes to another
// domain, so the kernel handles them one at a time.
func hasty(args []string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	count, _ := strconv.Atoi(args[0])
	out := c.out
	var all bytes.Buffer
	c.out = &all
	for i := range count {
		err := errors.Join(c.send("command", "Memory.Set", fmt.Sprintf(`{"key":"hasty","value":%d}`, i)),
			c.send("command", "Syscall.Echo", `{"message":""}`))
		if err != nil {
			return failed(err)
		}
	}
	if _, err := out.Write(all.Bytes()); err != nil {
		return failed(err)
	}
	return 0
}

// witness searches the journal for itself, as early as possible and after its first answer.
func witness(args []string) int {
	own := fmt.Sprintf(`"pid":%s,"os_pid":%d`, os.Getenv("PWOS_PID"), os.Getpid())
	first, err := journal(args[0])
	if err != nil {
		return failed(err)
	}
	if n := strings.Count(first, `"type":"Syscall.Spawn"`); strconv.Itoa(n) != os.Getenv("PWOS_PID") {
		return failed(fmt.Errorf("%d spawns are on disk, and this is agent %s", n, os.Getenv("PWOS_PID")))
	}
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	if _, err := c.call("query", "Syscall.Ping", `{"payload":1}`); err != nil {
		return failed(err)
	}
	then, err := journal(args[0])
	if err != nil {
		return failed(err)
	}
	if !strings.Contains(then, own) {
		return failed(fmt.Errorf("nothing says %s", own))
	}
	return 0
}

func journal(dir string) (all string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		all, err = all+string(text), errors.Join(err, readErr)
	}
	return all, err
}
