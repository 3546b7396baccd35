// Package secrets_test holds a whole daemon to its promise that a secret is nowhere but with its caller.
package secrets_test

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
)

// asProgram in the environment makes this test binary the daemon: only a process has a stderr, and dies of a signal.
const asProgram = "PWOS_SECRETS_TEST"

func TestMain(m *testing.M) {
	daemon.Shim()
	if os.Getenv(asProgram) != "" {
		os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	os.Exit(testkit.Main(m))
}

// place is where a daemon lives, one life after the other.
type place struct{ dir, key string }

func newPlace(t *testing.T) place {
	t.Helper()
	dir := testkit.Dir(t)
	p := place{dir: dir, key: filepath.Join(dir, "key")}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(p.key, pem.EncodeToMemory(block), 0o600))
	testkit.Must(t, os.WriteFile(p.path("config.toml"), fmt.Appendf(nil, "[crypto]\nidentity = %q\n[journal]\nsnapshot_every = 500\n", p.key), 0o600))
	return p
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

// start begins a life that says all there is to say, and adds it to the file of output.
func (p place) start(t *testing.T) *testkit.Process {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	d := testkit.Daemon{
		Command: []string{self, "--log-level=debug", "--log-format=json"}, Dir: p.dir, Log: p.path("output"),
		Env: []string{asProgram + "=1", "GOTRACEBACK=system", "GORACE=atexit_sleep_ms=0"},
	}
	return d.Start(t)
}

// client is a connection whose answers are gathered while it writes, so that neither side waits for the other.
type client struct {
	t    *testing.T
	conn *net.UnixConn
	done chan struct{}
	read [][]byte // lines, the prologue's first; complete once done is closed
}

// dial connects to a socket. Without a greeting it is not past the prologue.
func (p place) dial(t *testing.T, socket string, greeting bool) *client {
	t.Helper()
	conn, err := net.Dial("unix", p.path("r/"+socket))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	c := &client{t: t, conn: conn.(*net.UnixConn), done: make(chan struct{})}
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
func (c *client) write(line string) {
	c.t.Helper()
	_, err := c.conn.Write([]byte(line + "\n"))
	testkit.Must(c.t, err)
}

// finish ends the input, and returns all answers.
func (c *client) finish() [][]byte {
	c.t.Helper()
	testkit.Must(c.t, c.conn.CloseWrite())
	<-c.done
	if len(c.read) == 0 {
		c.t.Fatal("not even a prologue")
	}
	return c.read[1:]
}

// each calls see with the name and the content of every file that a daemon writes, the directories' names alone.
func (p place) each(t *testing.T, see func(name string, content []byte)) {
	t.Helper()
	for _, root := range []string{"s", "r", "output"} {
		testkit.Must(t, filepath.WalkDir(p.path(root), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			var content []byte
			if e.Type().IsRegular() {
				content, err = os.ReadFile(path)
			}
			see(strings.TrimPrefix(path, p.dir), content)
			return err
		}))
	}
}

// look finds secrets in every file that a daemon writes, and returns how many files have something in them.
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

// found reports whether a file holds a secret.
func found(t *testing.T, p place, s *search) (is bool) {
	t.Helper()
	p.each(t, func(_ string, content []byte) { is = is || len(s.in(content)) > 0 })
	return is
}

// output is what the daemon has said in all its lives.
func (p place) output(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(p.path("output"))
	testkit.Must(t, err)
	return text
}
