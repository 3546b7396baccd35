package promptware_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// patience ends a test that waits for what never comes; nothing is measured by it.
const patience = 5 * time.Minute

// place is where a daemon lives, one life after the other, with a root and a configuration.
type place struct{ dir string }

// newPlace makes a place whose root holds the given files, and whose configuration is settings and that root.
func newPlace(t *testing.T, settings string, files map[string]string) place {
	t.Helper()
	dir := testkit.Dir(t)
	p := place{dir}
	testkit.Must(t, os.Mkdir(p.path("root"), 0o700))
	testkit.Must(t, os.WriteFile(p.path("config.toml"), fmt.Appendf(nil, "root = %q\n%s", p.path("root"), settings), 0o600))
	for name, text := range files {
		p.put(t, name, text)
	}
	return p
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

// put writes a file below root.
func (p place) put(t *testing.T, name, text string) {
	t.Helper()
	name = p.path("root/" + name)
	testkit.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	testkit.Must(t, os.WriteFile(name, []byte(text), 0o600))
}

// entries are the lines of the journal that have a text in them.
func (p place) entries(t *testing.T, text string) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(p.path("s/journal/*.ndjson"))
	testkit.Must(t, err)
	for _, name := range files {
		content, err := os.ReadFile(name)
		testkit.Must(t, err)
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, text) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// start begins a life of the daemon, which is this binary again.
func (p place) start(t *testing.T) *testkit.Process {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	d := testkit.Daemon{
		Command: []string{self}, Dir: p.dir, Log: p.path("output"),
		Env: []string{asDaemon + "=1", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"},
	}
	return d.Start(t)
}

// client makes one call at a time.
type client struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
	sent  int
}

func (p place) dial(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("unix", p.path("r/kernel.sock"))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(patience)))
	c := &client{t: t, conn: conn, lines: bufio.NewReader(conn)}
	_, err = c.lines.ReadString('\n')
	testkit.Must(t, err)
	_, err = conn.Write([]byte(`{"kind":"reply","type":"Syscall.Authenticate","data":null}` + "\n"))
	testkit.Must(t, err)
	return c
}

// answer is a reply, or an error, whose code is then not 0.
type answer struct {
	code int
	text string // of an error
	data string
}

// send sends a command, or a query where the type says that it is one.
func (c *client) send(typ, data string) error {
	kind := "command"
	if strings.Contains("Syscall.GetState Syscall.Ping FileSystem.Resolve Audit.Verify Audit.Log Audit.Metrics", typ) {
		kind = "query"
	}
	c.sent++
	_, err := fmt.Fprintf(c.conn, `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"m%d","timestamp":0}}`+"\n", kind, typ, data, c.sent)
	return err
}

func (c *client) receive() (answer, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return answer{}, err
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return answer{}, err
	}
	var m struct {
		Kind string
		Data json.RawMessage
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return answer{}, err
	}
	if m.Kind == "reply" {
		return answer{data: string(m.Data)}, nil
	}
	var fault struct {
		Code    int
		Message string
	}
	err = json.Unmarshal(m.Data, &fault)
	return answer{code: fault.Code, text: fault.Message}, err
}

// try makes a call and returns what came of it.
func (c *client) try(typ, data string) answer {
	c.t.Helper()
	testkit.Must(c.t, c.send(typ, data))
	a, err := c.receive()
	testkit.Must(c.t, err)
	return a
}

// call is try for a call that must succeed.
func (c *client) call(typ, data string) string {
	c.t.Helper()
	a := c.try(typ, data)
	if a.code != 0 {
		c.t.Fatalf("%s %.200s: %+v", typ, data, a)
	}
	return a.data
}

// refused fails the test unless a call gets this error.
func (c *client) refused(code int, says, typ, data string) {
	c.t.Helper()
	if a := c.try(typ, data); a.code != code || !strings.Contains(a.text, says) {
		c.t.Errorf("%s %.200s: got %+v, want %d that says %q", typ, data, a, code, says)
	}
}

// member is a member of an object, as it is written; "" where it is not there.
func member(t *testing.T, object, name string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatalf("%v: %.300s", err, object)
	}
	return string(m[name])
}
