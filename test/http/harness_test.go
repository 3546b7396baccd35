// Package http_test holds a whole kernel to what it says of data that comes from elsewhere.
package http_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// asProgram in the environment makes this test binary the daemon: only a process can be killed.
const asProgram = "PWOS_HTTP_TEST"

func TestMain(m *testing.M) {
	daemon.Shim()
	if os.Getenv(asProgram) != "" {
		os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	os.Exit(testkit.Main(m))
}

// place is where a daemon lives, one life after the other, with a server that it trusts.
type place struct {
	t      *testing.T
	dir    string
	server *httptest.Server
	cfg    config.Config
	stop   func()
}

// newPlace makes one. Loopback is open to it, else no test could have a server.
func newPlace(t *testing.T, serve http.HandlerFunc, edit ...func(*config.Config)) *place {
	t.Helper()
	dir := testkit.Dir(t)
	p := &place{t: t, dir: dir, server: httptest.NewTLSServer(serve)}
	t.Cleanup(p.server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	testkit.Must(t, os.WriteFile(p.path("ca.pem"), ca, 0o600))
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(p.path("key"), pem.EncodeToMemory(block), 0o600))
	p.cfg = config.Default(func(string) string { return "" }, os.Getuid(), dir)
	p.cfg.RuntimeDir, p.cfg.StateDir = p.path("r"), p.path("s")
	p.cfg.HTTP.Allow, p.cfg.HTTP.CAFile = []string{"127.0.0.0/8"}, p.path("ca.pem")
	p.cfg.Crypto.Identity = p.path("key")
	for _, e := range edit {
		e(&p.cfg)
	}
	return p
}

func start(t *testing.T, serve http.HandlerFunc, edit ...func(*config.Config)) *place {
	t.Helper()
	p := newPlace(t, serve, edit...)
	p.begin()
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

// begin starts a daemon in this process on what there is.
func (p *place) begin() {
	p.t.Helper()
	var d *daemon.Daemon
	testkit.Eventually(p.t, "the lock of the life before is free", func() bool { // a program that another test starts may hold it for a moment
		d = daemon.New(p.cfg, nil, slog.New(slog.DiscardHandler))
		err := d.Open(p.t.Context())
		if err != nil {
			_ = d.Close()
		}
		if err != nil && !errors.Is(err, daemon.ErrRunning) {
			p.t.Fatal(err)
		}
		return err == nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	p.stop = func() {
		p.stop = func() {}
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("run: %v", err)
		}
		if err := d.Close(); err != nil {
			p.t.Errorf("close: %v", err)
		}
	}
	p.t.Cleanup(func() { p.stop() })
}

func (p *place) dial() *client.Client {
	p.t.Helper()
	c, err := client.Dial(p.t.Context(), client.Options{RuntimeDir: p.cfg.RuntimeDir})
	testkit.Must(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// answer is what came of a call.
type answer struct {
	schema.Message
	code int
	text string
}

// body is the reply's data as JSON.
func (a answer) body(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.Data, &m); err != nil {
		t.Fatalf("%.100s (%d %s): %v", a.Data, a.code, a.text, err)
	}
	return m
}

// call makes one call.
func call(t testing.TB, c *client.Client, typ string, data any, key ...string) answer {
	t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		t.Fatalf("no %s", typ)
	}
	text, err := json.Marshal(data)
	testkit.Must(t, err)
	m := schema.Message{Kind: row.Kind, Type: typ, Data: text, Meta: schema.Metadata{IdempotencyKey: strings.Join(key, "")}}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	got, err := c.Do(ctx, m)
	a := answer{Message: got}
	if refused := client.Answered(err); refused != nil {
		a.code, a.text = refused.Code(), refused.Message
	} else if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return a
}

// done makes a call that has to succeed.
func done(t testing.TB, c *client.Client, typ string, data any, key ...string) map[string]any {
	t.Helper()
	a := call(t, c, typ, data, key...)
	if a.code != 0 {
		t.Fatalf("%s: %d %s", typ, a.code, a.text)
	}
	return a.body(t)
}

// object is the data of a call.
type object = map[string]any

// agent spawns a process that may fetch as http says.
func agent(t testing.TB, c *client.Client, http object, allowed ...string) float64 {
	t.Helper()
	grant := object{"allowed_syscalls": append([]string{"Http.Fetch", "Memory.*", "Ipc.*", "Syscall.SendMsg", "Syscall.Spawn"}, allowed...)}
	if http != nil {
		grant["http"] = http
	}
	return done(t, c, "Syscall.Spawn", object{"child_agent_id": rand.Text(), "capabilities": grant})["child_pid"].(float64)
}

// refused fails unless a is an error of the given code that says all of words.
func refused(t testing.TB, a answer, code int, words ...string) {
	t.Helper()
	if a.code != code {
		t.Errorf("code %d (%s, %.100s), want %d", a.code, a.text, a.Data, code)
	}
	for _, word := range words {
		if !strings.Contains(a.text, word) {
			t.Errorf("%q does not say %q", a.text, word)
		}
	}
}

// journal is all that the daemon has written.
func (p *place) journal() string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.cfg.StateDir, "journal", "*.ndjson"))
	testkit.Must(p.t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		testkit.Must(p.t, err)
		all.Write(text)
	}
	return all.String()
}

func text(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) }
}
