package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// tree is a testkit.Place with a root.
type tree struct{ *testkit.Place }

// newTree creates a place whose root has the given files, and whose configuration is settings and that root.
func newTree(t *testing.T, settings string, files map[string]string) tree {
	t.Helper()
	p := tree{testkit.NewPlace(t, "")}
	testkit.Must(t, os.Mkdir(p.Path("root"), 0o700))
	testkit.WriteFile(t, p.Path("config.toml"), fmt.Sprintf("root = %q\n%s", p.Path("root"), settings))
	for name, text := range files {
		p.put(t, name, text)
	}
	return p
}

// put writes a file below root.
func (p tree) put(t *testing.T, name, text string) {
	t.Helper()
	name = p.Path("root/" + name)
	testkit.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	testkit.Must(t, os.WriteFile(name, []byte(text), 0o600))
}

// entries returns the lines of the journal that contain a text.
func (p tree) entries(t *testing.T, text string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(p.Journal(t)) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// start starts the daemon, which is this binary. It is killed at the end, unless it has ended.
func (p tree) start(t *testing.T) *testkit.Process {
	t.Helper()
	d := testkernel.Self(t)
	d.Dir, d.Log = p.Dir, p.Path("output")
	return d.Start(t)
}

// caller makes one call at a time.
type caller struct {
	*testkit.Conn
	t    *testing.T
	sent int
}

func (p tree) dial(t *testing.T) *caller {
	t.Helper()
	c := &caller{Conn: testkit.Value(testkit.Dial(p.Socket()))(t), t: t}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// answer is a reply, or an error, whose code is then not 0.
type answer struct {
	code int
	text string // of an error
	data string
}

// send sends a command, or a query, depending on the type.
func (c *caller) send(typ, data string) error {
	kind := "command"
	if strings.Contains("Syscall.GetState Syscall.Ping Memory.Get FileSystem.Resolve Audit.Verify Audit.Log Audit.Metrics", typ) {
		kind = "query"
	}
	c.sent++
	_, err := fmt.Fprintf(c, `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"m%d","timestamp":0}}`+"\n", kind, typ, data, c.sent)
	return err
}

func (c *caller) receive() (answer, error) {
	line, err := c.Line()
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

// try makes a call and returns its outcome.
func (c *caller) try(typ, data string) answer {
	c.t.Helper()
	testkit.Must(c.t, c.send(typ, data))
	a, err := c.receive()
	testkit.Must(c.t, err)
	return a
}

// call is try for a call that must succeed.
func (c *caller) call(typ, data string) string {
	c.t.Helper()
	a := c.try(typ, data)
	if a.code != 0 {
		c.t.Fatalf("%s %.200s: %+v", typ, data, a)
	}
	return a.data
}

// refused fails the test unless a call gets this error.
func (c *caller) refused(code int, says, typ, data string) {
	c.t.Helper()
	if a := c.try(typ, data); a.code != code || !strings.Contains(a.text, says) {
		c.t.Errorf("%s %.200s: got %+v, want %d that says %q", typ, data, a, code, says)
	}
}

// member returns the JSON of a member of an object; "" if it is missing.
func member(t *testing.T, object, name string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatalf("%v: %.300s", err, object)
	}
	return string(m[name])
}
