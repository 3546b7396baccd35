package hostile_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The hostile agent is the test binary. It was granted Syscall.Ping, and its processes use every attack that has ever
// stopped a kernel, concurrently, until they are killed. They repeat what is refused.

// attackName is the argument that makes the test binary the agent. It is followed by the kernel's directory and the name of
// the process's attack, which the agent itself does not have.
const attackName = "attack"

// attacks returns the agent's processes by name, and how many there are of each.
func attacks() map[string]struct {
	processes int
	run       func(home string)
} {
	return map[string]struct {
		processes int
		run       func(home string)
	}{
		"descriptors": {3, connectForEver},
		"silence":     {4, saySilently},
		"unread":      {2, readNothing},
		"locks":       {1, lockFiles},
		"refusals":    {2, func(home string) { flood(home, `{"kind":"command","type":"Memory.Set","data":{"key":"a","value":1}`) }},
		"queries": {2, func(home string) {
			flood(home, `{"kind":"query","type":"Syscall.Ping","data":{"payload":"`+strings.Repeat("x", 8000)+`"}`)
		}},
	}
}

// attack is the main function of the agent and of its processes.
func attack(home, which string) int {
	if which != "" {
		attacks()[which].run(home)
		return 0
	}
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	for name, a := range attacks() {
		for range a.processes {
			cmd := exec.Command(self, attackName, home, name)
			if err := cmd.Start(); err != nil {
				fmt.Fprintln(os.Stderr, "start", name, err)
				continue
			}
			go func() { _ = cmd.Wait() }()
		}
	}
	floodOn(os.Stdin, os.Stdout, `{"kind":"command","type":"Memory.Set","data":{"key":"a","value":1}`)
	select {} // the channel is closed, and the agent stays
}

// pause yields the processor when a connection is refused.
func pause() { time.Sleep(time.Millisecond) }

func dial(home string) (net.Conn, error) {
	return net.Dial("unix", filepath.Join(home, "r", "kernel.sock"))
}

// login answers the prologue, which needs no key, since the peer is an agent's process.
func login(in *bufio.Reader, out io.Writer) error {
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	_, err := io.WriteString(out, `{"kind":"reply","type":"Syscall.Authenticate","data":null}`+"\n")
	return err
}

// connectForEver keeps as many connections open as it can get, and tries to open more.
func connectForEver(home string) {
	var held []net.Conn
	for {
		c, err := dial(home)
		if err != nil {
			pause()
			if len(held) > 0 && len(held)%64 == 0 { // some are closed to make room for others
				_ = held[0].Close()
				held = held[1:]
			}
			continue
		}
		held = append(held, c)
	}
}

// saySilently connects and sends nothing, until the kernel closes the connection.
func saySilently(home string) {
	for {
		c, err := dial(home)
		if err != nil {
			pause()
			continue
		}
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
}

// readNothing opens many connections, and requests long answers on each without reading any.
func readNothing(home string) {
	frame := []byte(`{"kind":"query","type":"Syscall.Ping","data":{"payload":"` + strings.Repeat("x", 15_000) + `"},"metadata":{"id":"u","timestamp":1}}` + "\n")
	for {
		c, err := dial(home)
		if err != nil {
			pause()
			continue
		}
		go func() {
			defer c.Close()
			if login(bufio.NewReader(c), c) != nil {
				return
			}
			for {
				if _, err := c.Write(frame); err != nil {
					return
				}
			}
		}()
		pause()
	}
}

// lockFiles locks the files that the kernel needs, as far as the system allows.
func lockFiles(home string) {
	keys := filepath.Join(home, "authorized_keys")
	for {
		_ = os.Chmod(keys, 0o666)
		if f, err := os.Open(keys); err == nil {
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
			pause()
			_ = f.Close()
		}
		for _, name := range []string{"r", "r/kernel.lock", "s", "."} {
			if f, err := os.Open(filepath.Join(home, name)); err == nil {
				_ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
				pause()
				_ = f.Close()
			}
		}
		pause()
	}
}

// flood repeats one request as often as it can, and reads the answers.
func flood(home, head string) {
	for {
		c, err := dial(home)
		if err != nil {
			pause()
			continue
		}
		floodOn(c, c, head)
		_ = c.Close()
	}
}

// floodOn is flood on one connection, until that ends.
func floodOn(in io.Reader, out io.Writer, head string) {
	lines := bufio.NewReader(in)
	if login(lines, out) != nil {
		return
	}
	go func() {
		burst := []byte(strings.Repeat(head+`,"metadata":{"id":"f","timestamp":1}}`+"\n", 32))
		for {
			if _, err := out.Write(burst); err != nil {
				return
			}
		}
	}()
	_, _ = io.Copy(io.Discard, lines)
}
