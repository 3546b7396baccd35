package agents_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// bequeath passes both ends of its channel to the heir and ends, with its last frames in flight.
func bequeath([]string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	var conn net.Conn
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
		if conn, err = net.Dial("unix", "heir.sock"); err == nil {
			break
		}
		if time.Now().After(end) {
			return failed(err)
		}
	}
	raw := syscall.UnixRights(0, 1)
	if os.Getenv("PWOS_FD") != "" {
		raw = syscall.UnixRights(3)
	}
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte("x"), raw, nil); err != nil {
		return failed(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return failed(err)
	}
	if err := c.send("command", "Memory.Set", `{"key":"last/words","value":1}`); err != nil {
		return failed(err)
	}
	return 3
}

// heir receives a channel that is another agent's, and keeps it open; a loud one sends on it without end, and reads
// nothing.
func heir(args []string) int {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "heir.sock", Net: "unix"})
	if err != nil {
		return failed(err)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		return failed(err)
	}
	rights := make([]byte, 64)
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return failed(err)
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return failed(err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return failed(err)
	}
	out := os.NewFile(uintptr(fds[len(fds)-1]), "channel")
	if _, err := conn.Write([]byte("x")); err != nil {
		return failed(err)
	}
	if args[0] == "silent" {
		return idle(nil)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil { // until the other one has ended
		return failed(err)
	}
	lines := bufio.NewWriter(out)
	for err == nil {
		_, err = fmt.Fprintln(lines, `{"kind":"query","type":"Syscall.Ping","data":{"payload":1},"metadata":{"id":"1","timestamp":1}}`)
	}
	return idle(nil)
}

// An agent's channel ends with it. Another process with an end of it can neither continue as the agent nor hide its end
// from the kernel; everything that the agent itself sent is read.
func TestChannelEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	for _, how := range []string{"silent", "loud"} {
		for _, channel := range []string{"stdio", "fd3"} {
			dir, err := os.MkdirTemp(p.Dir, "d")
			testkit.Must(t, err)
			options := fmt.Sprintf(`%s,"cwd":%q,"sandbox":"off"`, allowAll, dir) // a confined one does not reach the other's socket
			keeper := c.spawn(t, options, "heir", how)
			pid := c.spawn(t, fmt.Sprintf(`%s,"channel":%q`, options, channel), "bequeath")
			if d := c.awaitGone(t, pid); number(d.Exit.Code) != 3 {
				t.Errorf("%s, %s: the agent ended as %+v", how, channel, d.Exit)
			}
			if f, err := c.call("command", "Memory.Delete", `{"key":"last/words"}`); err != nil {
				t.Errorf("%s, %s: the agent's last frames were not read: %s, %v", how, channel, f.Data, err)
			}
			c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, keeper), nil)
			if d := c.get(t, keeper); !strings.HasPrefix(d.reason(), "ordered") {
				t.Errorf("%s, %s: the heir ended as %+v", how, channel, d.Exit)
			}
		}
	}
}
