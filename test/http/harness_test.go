// Package http_test tests what comes to a whole kernel from outside: answers to fetches, data by reference, connections of
// agents' programs. The servers are on loopback.
package http_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// place is a testkit.Place whose kernel seals, and may fetch from loopback, since the tests' servers are there.
type place struct {
	*testkit.Place
	t      *testing.T
	server *httptest.Server // nil in a network, which has its own servers
	cfg    config.Config
	stop   func()
}

// withoutServer creates a place. Its kernel needs a certificate to trust before it begins.
func withoutServer(t *testing.T) *place {
	t.Helper()
	p := &place{Place: testkit.NewPlace(t, ""), t: t}
	p.cfg = testkernel.Settings(p.Place)
	p.cfg.HTTP.Allow, p.cfg.HTTP.CAFile = []string{"127.0.0.0/8"}, p.Path("ca.pem")
	p.cfg.Crypto.Identity = p.Key(t)
	return p
}

// newPlace creates a place with a server that its kernel trusts.
func newPlace(t *testing.T, serve http.HandlerFunc, edit ...func(*config.Config)) *place {
	t.Helper()
	p := withoutServer(t)
	p.server = httptest.NewTLSServer(serve)
	t.Cleanup(p.server.Close)
	p.trust(p.server.Certificate().Raw)
	for _, e := range edit {
		e(&p.cfg)
	}
	return p
}

// trust makes the kernel trust a server's certificate.
func (p *place) trust(der []byte) {
	p.t.Helper()
	testkit.WriteFile(p.t, p.cfg.HTTP.CAFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func start(t *testing.T, serve http.HandlerFunc, edit ...func(*config.Config)) *place {
	t.Helper()
	p := newPlace(t, serve, edit...)
	p.begin()
	return p
}

// begin starts a kernel in this process with the present state.
func (p *place) begin() {
	p.t.Helper()
	p.stop = testkernel.Start(p.t, p.cfg)
}

func (p *place) dial() *client.Client {
	p.t.Helper()
	return testkernel.Dial(p.t, p.cfg.RuntimeDir)
}

// answer is the outcome of a call.
type answer struct {
	schema.Message
	code int
	text string
}

// body returns the reply's data as JSON.
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

// done makes a call that must succeed.
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

// agent spawns a process that may fetch as http allows.
func agent(t testing.TB, c *client.Client, http object, allowed ...string) float64 {
	t.Helper()
	grant := object{"allowed_syscalls": append([]string{"Http.Fetch", "Memory.*", "Ipc.*", "Syscall.SendMsg", "Syscall.Spawn"}, allowed...)}
	if http != nil {
		grant["http"] = http
	}
	return done(t, c, "Syscall.Spawn", object{"child_agent_id": rand.Text(), "capabilities": grant})["child_pid"].(float64)
}

// refused fails the test unless a is an error with the given code whose message has all words.
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

func text(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) }
}
