package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain uses files on disk, where more time passes between the write of an entry and its answer.
func TestMain(m *testing.M) {
	if err := os.Setenv("TMPDIR", os.TempDir()); err != nil {
		panic(err)
	}
	os.Exit(testkit.Main(m))
}

// settings stop the clock, so that the tick of a delta does not depend on time, and have room for all messages.
const settings = `
[clock]
interval = "0s"
[ipc]
mailbox = 1000000
[resources]
gpu = 1000000000
[journal]
snapshot_every = 200
`

func newPlace(t *testing.T) *testkit.Place {
	t.Helper()
	return testkit.NewPlace(t, settings)
}

func daemonAt(t *testing.T, p *testkit.Place) *testkit.Daemon {
	t.Helper()
	return &testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Dir: p.Dir}
}

// client is a connection after the prologue. Its errors are those of the connection: those of a call are in the answer.
type client struct{ *testkit.Conn }

func dial(p *testkit.Place) (*client, error) {
	c, err := testkit.Dial(p.Socket())
	return &client{c}, err
}

func (c *client) end(err error) error {
	_ = c.Close()
	return err
}

func (c *client) write(text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// answer is a frame from the kernel.
type answer struct {
	Kind string          `json:"kind"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

func (c *client) next() (a answer, err error) {
	line, err := c.Line()
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(line, &a)
}

// frame returns a line of the given kind, with an idempotency key unless that is "".
func frame(kind, typ, data, key string) string {
	extra := ""
	if key != "" {
		extra = fmt.Sprintf(`,"idempotencyKey":%q`, key)
	}
	return fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"x","timestamp":1%s}}`+"\n", kind, typ, data, extra)
}

// errRefused says that a call was answered with an error.
var errRefused = errors.New("refused")

// call makes one call, which must succeed, and decodes its data into out.
func (c *client) call(kind, typ, data string, out any) error {
	if err := c.write(frame(kind, typ, data, "")); err != nil {
		return err
	}
	a, err := c.next()
	if err != nil {
		return err
	}
	if a.Kind != "reply" {
		return fmt.Errorf("%w: %s %s: %s", errRefused, typ, data, a.Data)
	}
	return json.Unmarshal(a.Data, out)
}

// killAmid sends a command and kills the kernel with SIGKILL, when reached is true for the files of a pattern as they were
// before and as they are now, or when the command is answered. The connection has ended then.
func killAmid(t *testing.T, running *testkit.Process, c *client, typ, data, pattern string, reached func(before, now []string) bool) {
	t.Helper()
	before := testkit.Value(filepath.Glob(pattern))(t)
	testkit.Must(t, c.write(frame("command", typ, data, "")))
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = c.next() // or the connection's end
	}()
	for !closed(answered) && !reached(before, testkit.Value(filepath.Glob(pattern))(t)) {
	}
	running.Kill(t)
	<-answered
	_ = c.end(nil)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
