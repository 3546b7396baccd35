package limits_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// helperEnv makes the test binary a client process that makes one call and exits.
const helperEnv = "PWOS_LIMITS_CLIENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		os.Exit(clientMain(dir))
	}
	os.Exit(testkit.Main(m))
}

// daemon is a running pwosd.
type daemon struct {
	dir string
	pid int
}

func start(t *testing.T) *daemon {
	t.Helper()
	return startIn(t, func(string) {})
}

// startIn is start, and calls prepare with the daemon's home directory first.
func startIn(t *testing.T, prepare func(home string)) *daemon {
	t.Helper()
	p := testkit.NewPlace(t, "")
	prepare(p.Dir)
	// The garbage collector runs early, so that the tests measure mostly memory in use.
	running := p.Start(t, testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Env: []string{"GOGC=10"}})
	return &daemon{dir: p.RuntimeDir(), pid: running.PID()}
}

// memory returns the daemon's resident memory in bytes, without file pages.
func (d *daemon) memory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.pid))
	if err != nil {
		t.Skip("needs /proc") // not Linux
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.Atoi(strings.Fields(value)[0])
			testkit.Must(t, err)
			return kb << 10
		}
	}
	t.Fatal("no RssAnon in /proc/pid/status")
	return 0
}

func grew(t *testing.T, before, after, most int) {
	t.Helper()
	t.Logf("memory grew by %d KiB, bound %d KiB", (after-before)>>10, most>>10)
	if after-before > most {
		t.Errorf("memory grew by %d bytes, want at most %d", after-before, most)
	}
}

func (d *daemon) connect(t *testing.T, socket string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(d.dir, socket))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// client sends frames of its own making, so that it can do what a real client would not.
type client struct {
	net.Conn
	t     testing.TB
	lines *bufio.Reader
}

func (d *daemon) dial(t *testing.T, socket string) *client {
	t.Helper()
	c := &client{Conn: d.connect(t, socket), t: t}
	c.lines = bufio.NewReader(c.Conn)
	c.expect("", "Syscall.Authenticate")
	c.send(testkit.Authenticated)
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// sendUntilStuck sends frames until the kernel reads no more, and returns how many it has sent completely.
func (c *client) sendUntilStuck(frame func(i int) string) int {
	c.t.Helper()
	for i := 0; ; i++ {
		text := []byte(frame(i))
		testkit.Must(c.t, c.SetWriteDeadline(time.Now().Add(2*time.Second)))
		n, err := c.Write(text)
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			c.t.Fatal(err)
		}
		c.rest(text[n:])
		return i + 1
	}
}

// rest completes a partly sent frame, while the caller reads.
func (c *client) rest(text []byte) {
	done := make(chan error, 1)
	c.t.Cleanup(func() {
		if err := <-done; err != nil {
			c.t.Errorf("send the rest of a frame: %v", err)
		}
	})
	go func() {
		err := c.SetWriteDeadline(time.Time{})
		if err == nil {
			_, err = c.Write(text)
		}
		if err == nil {
			err = c.Conn.(*net.UnixConn).CloseWrite()
		}
		done <- err
	}()
}

// expect reads the next line, which must answer the request id and contain text.
func (c *client) expect(id, text string) {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("expect %s: %v", id, err)
	}
	var m struct {
		Metadata struct{ Causation string }
	}
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Fatalf("%v: %.200s", err, line)
	}
	if m.Metadata.Causation != id || !strings.Contains(string(line), text) {
		c.t.Fatalf("got %.300s, want an answer to %q with %.100s", line, id, text)
	}
}

func ping(id, payload string) string {
	return fmt.Sprintf(`{"kind":"query","type":"Syscall.Ping","data":{"payload":%s},"metadata":{"id":%q,"timestamp":0}}`+"\n", payload, id)
}

func (d *daemon) callFromAnotherProcess(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{helperEnv + "=" + d.dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("client in another process: %v\n%s", err, out)
	}
}

func clientMain(dir string) int {
	c, err := net.Dial("unix", filepath.Join(dir, "kernel.sock"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer c.Close()
	lines := bufio.NewReader(c)
	if _, err := lines.ReadString('\n'); err != nil {
		fmt.Println("read prologue:", err)
		return 1
	}
	fmt.Fprint(c, testkit.Authenticated)
	fmt.Fprint(c, ping("honest", "3"))
	line, err := lines.ReadString('\n')
	if err != nil || !strings.Contains(line, `{"payload":3}`) {
		fmt.Println("read answer:", line, err)
		return 1
	}
	return 0
}

func raiseFileLimit(t *testing.T, need uint64) {
	t.Helper()
	var limit syscall.Rlimit
	testkit.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Max < need {
		t.Skipf("needs %d descriptors, the limit is %d", need, limit.Max)
	}
	limit.Cur = max(limit.Cur, need)
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}
