package state_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// place is a testkit.Place whose kernel has a sealing key.
type place struct {
	*testkit.Place
	key string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := testkit.NewPlace(t, "")
	key := p.Key(t)
	testkit.WriteFile(t, p.Path("config.toml"), fmt.Sprintf("[crypto]\nidentity = %q\n[journal]\nsnapshot_every = 500\n", key))
	return place{p, key}
}

// start starts a daemon with full logging, and appends the log to the file of output.
func (p place) start(t *testing.T) *testkit.Process {
	t.Helper()
	d := testkernel.Self(t, "--log-level=debug", "--log-format=json")
	d.Dir, d.Log, d.Env = p.Dir, p.Path("output"), append(d.Env, "GOTRACEBACK=system")
	return d.Start(t)
}

// connection is one whose answers are read while it writes, so that neither side blocks the other.
type connection struct {
	t    *testing.T
	conn *net.UnixConn
	done chan struct{}
	read [][]byte // lines, the prologue's first; complete when done is closed
}

// dial connects to a socket. Without a greeting it has not completed the prologue.
func (p place) dial(t *testing.T, socket string, greeting bool) *connection {
	t.Helper()
	conn, err := net.Dial("unix", p.Path("r/"+socket))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	c := &connection{t: t, conn: conn.(*net.UnixConn), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		lines := bufio.NewScanner(conn)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			c.read = append(c.read, bytes.Clone(lines.Bytes()))
		}
	}()
	if greeting {
		c.write(`{"kind":"reply","type":"Syscall.Authenticate","data":null}`)
	}
	return c
}

// write sends a line.
func (c *connection) write(line string) {
	c.t.Helper()
	_, err := c.conn.Write([]byte(line + "\n"))
	testkit.Must(c.t, err)
}

// finish ends the input, and returns all answers.
func (c *connection) finish() [][]byte {
	c.t.Helper()
	testkit.Must(c.t, c.conn.CloseWrite())
	<-c.done
	if len(c.read) == 0 {
		c.t.Fatal("the daemon sent no prologue")
	}
	return c.read[1:]
}

// each calls see with the name and the content of every file that a daemon writes, and with the names of directories.
func (p place) each(t *testing.T, see func(name string, content []byte)) {
	t.Helper()
	testkit.EachFile(t, func(path string, content []byte) {
		see(strings.TrimPrefix(path, p.Dir), content)
	}, p.Path("s"), p.Path("r"), p.Path("output"))
}

// look finds secrets in every file that a daemon writes, and returns how many files are not empty.
func (p place) look(t *testing.T, s *search, when string) (files int) {
	t.Helper()
	p.each(t, func(name string, content []byte) {
		if len(content) > 0 {
			files++
		}
		if found := append(s.in([]byte(name)), s.in(content)...); len(found) > 0 {
			t.Errorf("%s: %s holds %d parts of secrets, such as %s", when, name, len(found), found[0])
		}
	})
	return files
}

// found reports whether a file contains a secret.
func found(t *testing.T, p place, s *search) (is bool) {
	t.Helper()
	p.each(t, func(_ string, content []byte) { is = is || len(s.in(content)) > 0 })
	return is
}
