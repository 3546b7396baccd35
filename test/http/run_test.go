package http_test

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
)

// outside is the address of the servers of all names.
const outside = "127.0.0.154"

// modelKey is the credential of the model.
const modelKey = "sk-CANARY-51c0ffee"

// resolve makes this binary resolve names itself, since the names of the tests do not exist. So its callers do not run in
// parallel: the parallel tests of the package wait for them.
func resolve(t *testing.T) {
	t.Helper()
	names, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	answering := make(chan struct{})
	go func() {
		defer close(answering)
		answerNames(names)
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

// answerNames resolves every name to outside.
func answerNames(conn net.PacketConn) {
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

// network is a place whose kernel serves agents' networks, with servers of names around it.
type network struct {
	*place
	client *client.Client

	mu   sync.Mutex
	keys []string // credentials that the model received
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	resolve(t)
	p := &network{place: withoutServer(t)}
	p.serve("allowed.test", "other.test", "api.model.test")
	p.cfg.Upstream = map[string]config.Upstream{"model": {
		URL: "https://api.model.test/v1", Header: "Authorization: Bearer", From: "vault/model", Allow: []string{"GET /v1/…"},
		Env: "MODEL_BASE_URL", Intercept: true,
	}}
	p.begin()
	p.client = p.dial()
	return p
}

// serve serves names over TLS and plain HTTP.
func (p *network) serve(names ...string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(p.t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "outside"}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	testkit.Must(p.t, err)
	p.trust(der)
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

// run runs a program as an agent with --net kernel, and returns its PID and its output.
func (p *network) run(argv ...string) (pid float64, said string) {
	p.t.Helper()
	return p.runWith(object{}, argv...)
}

// runWith is run for an agent with a budget.
func (p *network) runWith(budget object, argv ...string) (pid float64, said string) {
	p.t.Helper()
	work := p.Path("work")
	testkit.Must(p.t, os.MkdirAll(work, 0o777))
	ca := testkit.ReadFile(p.t, p.cfg.HTTP.CAFile)
	testkit.Must(p.t, os.WriteFile(filepath.Join(work, "ca.pem"), []byte(ca), 0o644))
	pid = done(p.t, p.client, "Syscall.Spawn", object{
		"child_agent_id": "program", "command": argv, "channel": "fd3", "cwd": work, "sandbox": object{"level": "default", "net": "kernel"},
		"env": object{"OUTSIDE_CA": "ca.pem"},
		"capabilities": object{
			"allowed_syscalls": []string{"Syscall.Ping", "Upstream:model"}, "http": object{"hosts": []string{"allowed.test"}},
			"budget": budget,
		},
	})["child_pid"].(float64)
	testkit.Eventually(p.t, fmt.Sprintf("%v has ended", argv), func() bool {
		return done(p.t, p.client, "Process.Get", object{"pid": pid})["state"] == "TERMINATED"
	})
	return pid, testkit.ReadFile(p.t, p.Path(fmt.Sprintf("s/agents/%v/stderr.log", pid)))
}

// An agent's programs reach only what it was granted, through the proxy and by names.
func TestRun(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	p := newNetwork(t)
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
		rows, err := json.Marshal(done(t, p.client, "Audit.Log", object{"pid": pid, "type": "Net.Connect"})["entries"])
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
	p := newNetwork(t)
	sealed := done(t, p.client, "Crypto.Seal", object{"plaintext": modelKey})["value"]
	done(t, p.client, "Memory.Set", object{"key": "vault/model", "value": sealed})
	_, said := p.run("sh", "-c", `env; curl -sSi "$MODEL_BASE_URL/x"; curl -sSi https://api.model.test/v1/y; cat /proc/self/environ`)
	if n := strings.Count(said, "from the model"); n != 2 {
		t.Errorf("%d answers: %s", n, said)
	}
	p.mu.Lock()
	if len(p.keys) != 2 || p.keys[0] != "Bearer "+modelKey || p.keys[1] != "Bearer "+modelKey {
		t.Errorf("the model saw %q", p.keys)
	}
	p.mu.Unlock()
	if strings.Contains(said, modelKey) {
		t.Errorf("the agent saw the credential: %s", said)
	}
	if found := testkit.FilesWith(t, modelKey, p.Dir); found != nil {
		t.Errorf("%v hold the credential", found)
	}
}

// The usage that a model's answer reports counts towards the agent's budget, and a connection of its network is a fetch. If
// nothing is left, the agent gets an error, and nothing is sent.
func TestRunBudget(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	p := newNetwork(t)
	done(t, p.client, "Memory.Set", object{"key": "vault/model", "value": done(t, p.client, "Crypto.Seal", object{"plaintext": modelKey})["value"]})
	_, said := p.runWith(object{"tokens": 10}, "sh", "-c", `for i in 1 2 3; do curl -sSi "$MODEL_BASE_URL/x"; done`)
	if n := strings.Count(said, "from the model"); n != 2 || !strings.Contains(said, "HTTP/1.1 429") || !strings.Contains(said, "-4 of 10 are left") {
		t.Errorf("%d answers: %s", n, said)
	}
	p.mu.Lock()
	if len(p.keys) != 2 {
		t.Errorf("the model saw %q", p.keys)
	}
	p.mu.Unlock()
	_, said = p.runWith(object{"usd": 0.0001}, "sh", "-c", `for i in 1 2 3; do curl -sSi "$MODEL_BASE_URL/x"; done`) // 92 millionths each, at the dearest
	if n := strings.Count(said, "from the model"); n != 2 || !strings.Contains(said, "HTTP/1.1 429") {
		t.Errorf("with a model whose price nobody knows, %d answers: %s", n, said)
	}
	_, said = p.runWith(object{"fetches": 1}, "sh", "-c", `for i in 1 2; do curl -sS --cacert $OUTSIDE_CA https://allowed.test/ || echo REFUSED; done`)
	if !strings.HasPrefix(said, "hello from allowed.test") || !strings.Contains(said, "REFUSED") {
		t.Errorf("said %s", said)
	}
}
