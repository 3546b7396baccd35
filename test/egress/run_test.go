// Package egress_test runs ordinary programs as agents whose network the kernel serves, with servers on loopback.
package egress_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

// outside is the address of the servers of all names.
const outside = "127.0.0.154"

const secret = "sk-CANARY-51c0ffee"

func TestMain(m *testing.M) { testkernel.Main(m) }

// resolve makes this binary resolve names itself, since the names of the tests do not exist. So the tests do not run in
// parallel.
func resolve(t *testing.T) {
	t.Helper()
	names, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	answering := make(chan struct{})
	go func() {
		defer close(answering)
		answer(names)
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", names.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = names.Close()
		<-answering
	})
}

// answer resolves every name to outside.
func answer(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(outside).As4()},
			}}
		}
		if raw, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(raw, from)
		}
	}
}

// place is a testkit.Place whose kernel has servers around it.
type place struct {
	*testkit.Place
	t      *testing.T
	client *client.Client
	ca     string

	mu   sync.Mutex
	keys []string // credentials that the model received
}

func open(t *testing.T) *place {
	t.Helper()
	resolve(t)
	p := &place{Place: testkit.NewPlace(t, ""), t: t}
	p.ca = p.Path("ca.pem")
	p.serve("allowed.test", "other.test", "api.model.test")
	cfg := testkernel.Settings(p.Place)
	cfg.Crypto.Identity = p.Key(t)
	cfg.HTTP.Allow, cfg.HTTP.CAFile = []string{"127.0.0.0/8"}, p.ca
	cfg.Upstream = map[string]config.Upstream{"model": {
		URL: "https://api.model.test/v1", Header: "Authorization: Bearer", From: "vault/model", Allow: []string{"GET /v1/…"},
		Env: "MODEL_BASE_URL", Intercept: true,
	}}
	testkernel.Start(t, cfg)
	p.client = testkernel.Dial(t, cfg.RuntimeDir)
	return p
}

// serve serves names over TLS and plain HTTP.
func (p *place) serve(names ...string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(p.t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "outside"}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	testkit.Must(p.t, err)
	testkit.Must(p.t, os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "api.model.test" {
			p.mu.Lock()
			p.keys = append(p.keys, r.Header.Get("Authorization"))
			p.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"hello":"from the model","usage":{"input_tokens":3,"output_tokens":4}}`)
			return
		}
		_, _ = io.WriteString(w, "hello from "+r.Host)
	})
	for _, port := range []string{"443", "80"} {
		l, err := net.Listen("tcp", outside+":"+port)
		if err != nil {
			p.t.Skipf("a server on port %s of %s: %v", port, outside, err)
		}
		if port == "443" {
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
		}
		server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(l)
		}()
		p.t.Cleanup(func() {
			_ = server.Close()
			<-done
		})
	}
}

type object = map[string]any

func (p *place) call(typ string, data any) (object, error) {
	p.t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		p.t.Fatalf("no %s", typ)
	}
	raw, err := json.Marshal(data)
	testkit.Must(p.t, err)
	ctx, cancel := context.WithTimeout(p.t.Context(), testkit.Patience)
	defer cancel()
	got, err := p.client.Do(ctx, schema.Message{Kind: row.Kind, Type: typ, Data: raw})
	if err != nil {
		return nil, err
	}
	var out object
	testkit.Must(p.t, json.Unmarshal(got.Data, &out))
	return out, nil
}

func (p *place) done(typ string, data any) object {
	p.t.Helper()
	out, err := p.call(typ, data)
	testkit.Must(p.t, err)
	return out
}

// run runs a program as an agent with --net kernel, and returns its PID and its output.
func (p *place) run(argv ...string) (pid float64, said string) {
	p.t.Helper()
	return p.runWith(object{}, argv...)
}

// runWith is run for an agent with a budget.
func (p *place) runWith(budget object, argv ...string) (pid float64, said string) {
	p.t.Helper()
	work := p.Path("work")
	testkit.Must(p.t, os.MkdirAll(work, 0o777))
	ca, err := os.ReadFile(p.ca)
	testkit.Must(p.t, err)
	testkit.Must(p.t, os.WriteFile(filepath.Join(work, "ca.pem"), ca, 0o644))
	out, err := p.call("Syscall.Spawn", object{
		"child_agent_id": "program", "command": argv, "channel": "fd3", "cwd": work, "sandbox": object{"level": "default", "net": "kernel"},
		"env": object{"OUTSIDE_CA": "ca.pem"},
		"capabilities": object{
			"allowed_syscalls": []string{"Syscall.Ping", "Upstream:model"}, "http": object{"hosts": []string{"allowed.test"}},
			"budget": budget,
		},
	})
	testkit.Must(p.t, err)
	pid = out["child_pid"].(float64)
	testkit.Eventually(p.t, fmt.Sprintf("%v has ended", argv), func() bool {
		return p.done("Process.Get", object{"pid": pid})["state"] == "TERMINATED"
	})
	return pid, testkit.ReadFile(p.t, p.Path(fmt.Sprintf("s/agents/%v/stderr.log", pid)))
}

// An agent's programs reach only what it was granted, through the proxy and by names.
func TestRun(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	p := open(t)
	for script, want := range map[string]string{
		"curl -sS --cacert $OUTSIDE_CA https://allowed.test/":                                                      "hello from allowed.test",
		"curl -sS --noproxy '*' --cacert $OUTSIDE_CA https://allowed.test/":                                        "hello from allowed.test",
		"curl -sS http://allowed.test/":                                                                            "hello from allowed.test",
		"curl -sS --cacert $OUTSIDE_CA https://other.test/ || echo REFUSED":                                        "REFUSED",
		"curl -sS --noproxy '*' --cacert $OUTSIDE_CA https://other.test/ || echo REFUSED":                          "REFUSED",
		"curl -sSk --noproxy '*' https://" + outside + "/ || echo REFUSED":                                         "REFUSED",
		"curl -sSk --noproxy '*' --connect-to other.test:443:allowed.test:443 https://other.test/ || echo REFUSED": "REFUSED",
	} {
		pid, said := p.run("sh", "-c", script)
		if !strings.Contains(said, want) || strings.Contains(said, "hello from other.test") {
			t.Errorf("%s: %s", script, said)
		}
		rows, err := json.Marshal(p.done("Audit.Log", object{"pid": pid, "type": "Net.Connect"})["entries"])
		testkit.Must(t, err)
		if !strings.Contains(script, outside) && !bytes.Contains(rows, []byte("Net.Connect")) {
			t.Errorf("%s: no entry", script)
		}
	}
}

// An agent uses an upstream whose credential it never has.
func TestRunUpstream(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	p := open(t)
	sealed := p.done("Crypto.Seal", object{"plaintext": secret})["value"]
	p.done("Memory.Set", object{"key": "vault/model", "value": sealed})
	_, said := p.run("sh", "-c", `env; curl -sSi "$MODEL_BASE_URL/x"; curl -sSi https://api.model.test/v1/y; cat /proc/self/environ`)
	if n := strings.Count(said, "from the model"); n != 2 {
		t.Errorf("%d answers: %s", n, said)
	}
	p.mu.Lock()
	if len(p.keys) != 2 || p.keys[0] != "Bearer "+secret || p.keys[1] != "Bearer "+secret {
		t.Errorf("the model saw %q", p.keys)
	}
	p.mu.Unlock()
	if strings.Contains(said, secret) {
		t.Errorf("the agent saw the credential: %s", said)
	}
	if found := testkit.FilesWith(t, secret, p.Dir); found != nil {
		t.Errorf("%v hold the credential", found)
	}
}

// The usage that a model's answer reports counts towards the agent's budget, and a connection of its network is a fetch. If
// nothing is left, the agent gets an error, and nothing is sent.
func TestRunBudget(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	p := open(t)
	p.done("Memory.Set", object{"key": "vault/model", "value": p.done("Crypto.Seal", object{"plaintext": secret})["value"]})
	_, said := p.runWith(object{"tokens": 10}, "sh", "-c", `for i in 1 2 3; do curl -sSi "$MODEL_BASE_URL/x"; done`)
	if n := strings.Count(said, "from the model"); n != 2 || !strings.Contains(said, "HTTP/1.1 429") || !strings.Contains(said, "-4 of 10 are left") {
		t.Errorf("%d answers: %s", n, said)
	}
	p.mu.Lock()
	if len(p.keys) != 2 {
		t.Errorf("the model saw %q", p.keys)
	}
	p.mu.Unlock()
	_, said = p.runWith(object{"fetches": 1}, "sh", "-c", `for i in 1 2; do curl -sS --cacert $OUTSIDE_CA https://allowed.test/ || echo REFUSED; done`)
	if !strings.HasPrefix(said, "hello from allowed.test") || !strings.Contains(said, "REFUSED") {
		t.Errorf("said %s", said)
	}
}
