package daemon_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// networked is a daemon that serves the network of one agent, on loopback.
type networked struct {
	t      *testing.T
	daemon *daemon.Daemon
	log    *testkit.Buffer
	dir    string
	pid    int64

	stop      func()
	proxy     string
	upstreams map[string]string
}

// openNetwork starts one. Loopback is open to agents, else no test could have a server.
func openNetwork(t *testing.T, change func(*config.Config), grant schema.SpawnCapability) *networked {
	t.Helper()
	n := &networked{t: t, dir: testkit.Dir(t), log: &testkit.Buffer{}, upstreams: map[string]string{}}
	key := filepath.Join(n.dir, "key")
	testkit.NewKey(t, key)
	cfg := settingsIn(n.dir)
	cfg.Crypto.Identity = key
	cfg.HTTP.Allow, cfg.HTTP.MaxBodyBytes = []string{"127.0.0.0/8"}, 1<<20
	if change != nil {
		change(&cfg)
	}
	n.daemon = daemon.New(cfg, nil, slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	runThis(t, cfg, n.daemon)
	t.Cleanup(func() { n.stop() }) // before the daemon's cleanup
	n.pid = int64(n.do(schema.SyscallSpawn.With(&schema.SpawnInput{ChildAgentID: "a", Capabilities: &grant}))["child_pid"].(float64))
	if grant.HTTP != nil && slices.Contains(grant.HTTP.Hosts, insideOnly) {
		n.stop = func() {}
		return n
	}
	s := egress.Sockets{Proxy: listening(t), Upstreams: map[string]net.Listener{}}
	n.proxy = s.Proxy.Addr().String()
	for name := range cfg.Upstream {
		l := listening(t)
		s.Upstreams[name], n.upstreams[name] = l, l.Addr().String()
	}
	n.stop = n.daemon.ServeNetwork(n.pid, s)
	return n
}

func listening(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	return l
}

// do makes a call as the operator.
func (n *networked) do(request schema.Request) map[string]any {
	n.t.Helper()
	data, err := n.daemon.Do(request)
	testkit.Must(n.t, err)
	var out map[string]any
	testkit.Must(n.t, json.Unmarshal(data, &out))
	return out
}

// rows returns the entries of the agent and those that end its calls, as Audit.Log shows them.
func (n *networked) rows() []schema.AuditEntry {
	n.t.Helper()
	data, err := n.daemon.Do(schema.AuditLog.With(&schema.AuditLogInput{Limit: new(int64(1000))}))
	testkit.Must(n.t, err)
	var out schema.AuditLogOutput
	testkit.Must(n.t, json.Unmarshal(data, &out))
	return slices.DeleteFunc(out.Entries, func(e schema.AuditEntry) bool { return !strings.HasPrefix(e.Type, "Net.") })
}

// row waits for the first matching entry.
func (n *networked) row(typ, holds string) (found schema.AuditEntry) {
	n.t.Helper()
	testkit.Eventually(n.t, typ+" with "+holds, func() bool {
		for _, e := range n.rows() {
			if e.Type == typ && strings.Contains(string(e.Payload)+string(e.Error), holds) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// connect requests a connection to a host from the proxy.
func (n *networked) connect(authority string) (net.Conn, int, string) {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.proxy)
	testkit.Must(n.t, err)
	n.t.Cleanup(func() { _ = conn.Close() })
	testkit.Must(n.t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", authority)
	testkit.Must(n.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	testkit.Must(n.t, err)
	text := ""
	if resp.StatusCode != 200 {
		body, err := io.ReadAll(resp.Body)
		testkit.Must(n.t, err)
		text = string(body)
	}
	return conn, resp.StatusCode, text
}

// server starts a server that says hello over TLS, at localhost and a port.
func server(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	testkit.Must(t, err)
	return "localhost:" + port
}

func hosts(list ...string) schema.SpawnCapability {
	return schema.SpawnCapability{AllowedSyscalls: []string{"Syscall.SendMsg"}, HTTP: &schema.HTTPGrant{Hosts: list}}
}

// A connection is a call of the agent whose row shows how it ended. A refused connection is a denied entry that says what
// to grant.
func TestNetworkIsJournaled(t *testing.T) {
	t.Parallel()
	at := server(t)
	n := openNetwork(t, nil, hosts(at))
	conn, status, text := n.connect(at)
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	client := tls.Client(conn, &tls.Config{ServerName: "localhost", InsecureSkipVerify: true})
	_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	testkit.Must(t, err)
	answer, err := io.ReadAll(client)
	testkit.Must(t, err)
	if !strings.HasSuffix(string(answer), "hello") {
		t.Errorf("answered %q", answer)
	}
	testkit.Must(t, conn.Close())
	end := n.row("Net.Connect", `"host":"localhost"`)
	if end.PID != n.pid || !end.Success || !strings.Contains(string(end.Payload), `"ended":`) || strings.Contains(string(end.Payload), `"received":0`) {
		t.Errorf("end %+v", end)
	}

	_, status, text = n.connect("other.test:443")
	denied := n.row("Net.Connect", "other.test")
	advice := fmt.Sprintf(`"pwos cap grant %d --add Http.Fetch --host other.test"`, n.pid)
	if status != 403 || denied.Success || denied.PID != n.pid || !strings.Contains(string(denied.Error), advice) || !strings.Contains(text, advice) {
		t.Errorf("%d %s, entry %+v", status, text, denied)
	}
	counted := n.do(schema.AuditMetrics.With(&schema.AuditMetricsInput{}))["denied_by_code"].(map[string]any)
	if counted["Net.Connect"] != 1.0 {
		t.Errorf("denials: %v", counted)
	}
}

// Addresses that the configuration denies to Http.Fetch are denied to connections, with any grant.
func TestNetworkAddresses(t *testing.T) {
	t.Parallel()
	at := server(t)
	n := openNetwork(t, func(c *config.Config) { c.HTTP.Allow = nil }, hosts(at, "127.0.0.1:*", "169.254.169.254"))
	for _, authority := range []string{at, "127.0.0.1:1", "169.254.169.254:80", "169.254.169.254:443"} {
		_, status, text := n.connect(authority)
		if authority == "169.254.169.254:80" { // what follows is HTTP, and the address is dialled then
			continue
		}
		if status != 403 || !strings.Contains(text, "which is closed to agents") {
			t.Errorf("%s: %d %s", authority, status, text)
		}
	}
	if end := n.row("Net.Connect", "closed to agents"); end.Success {
		t.Errorf("end %+v", end)
	}
}

// Revoking the token, or ending the process, closes open connections.
func TestNetworkIsRevoked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(n *networked){
		"revoke":    func(n *networked) { n.do(schema.CapabilityRevoke.With(&schema.RevokeInput{PID: n.pid})) },
		"terminate": func(n *networked) { n.do(schema.SyscallTerminate.With(&schema.TerminateInput{TargetPID: n.pid})) },
		"grant": func(n *networked) {
			n.do(schema.CapabilityGrant.With(&schema.GrantInput{PID: n.pid, AllowedSyscalls: []string{"Memory.*"}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := server(t)
			n := openNetwork(t, nil, hosts(at))
			conn, status, text := n.connect(at)
			if status != 200 {
				t.Fatalf("%d %s", status, text)
			}
			change(n)
			if _, err := io.ReadAll(conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("the connection stays open")
			}
			n.row("Net.Connect", "no longer allowed")
		})
	}
}

// An agent cannot make the calls by which the kernel journals its network.
func TestNetworkCallsAreTheKernels(t *testing.T) {
	t.Parallel()
	n := openNetwork(t, nil, hosts("*"))
	for _, request := range []schema.Request{
		schema.NetConnect.With(&schema.NetConnectInput{Host: "a.test", Port: 443}),
		schema.NetRequest.With(&schema.NetRequestInput{Upstream: "a", Method: "GET", Path: "/"}),
		schema.NetConnect.End.With(&schema.EffectEnd{Type: "Net.Connect", Outcome: schema.Value("null")}),
	} {
		typ := request.Row.Type
		if _, err := n.daemon.Do(request); err == nil || !strings.Contains(err.Error(), "Unsupported type "+typ) {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// Only the upstream gets its credential: not the agent, the journal, the log, or any file of the kernel in plain text.
func TestNetworkUpstream(t *testing.T) {
	t.Parallel()
	const secret = "sk-CANARY-8d1f0b"
	got := make(chan string, 2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	}))
	t.Cleanup(s.Close)
	n := openNetwork(t, func(c *config.Config) {
		c.Upstream = map[string]config.Upstream{"open-ai": {
			URL: s.URL + "/v1", Header: "Authorization: Bearer", From: "vault/openai", Allow: []string{"POST /v1/…"}, Env: "OPENAI_BASE_URL",
		}}
	}, schema.SpawnCapability{AllowedSyscalls: []string{"Upstream:open-ai"}, HTTP: &schema.HTTPGrant{Hosts: []string{"a.test:7000", "b.test"}}})
	ask := func() string {
		conn, err := net.Dial("tcp", n.upstreams["open-ai"])
		testkit.Must(t, err)
		defer conn.Close()
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		_, err = io.WriteString(conn, "POST /v1/chat?key=mine HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer mine\r\nContent-Length: 2\r\n\r\n{}")
		testkit.Must(t, err)
		all, err := io.ReadAll(conn)
		testkit.Must(t, err)
		return string(all)
	}
	if answer := ask(); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "no credential that can be opened") {
		t.Errorf("without a credential: %q", answer)
	}
	aad := "vault/openai"
	sealed := n.do(schema.CryptoSeal.With(&schema.SealInput{Plaintext: secret + "\n", AAD: &aad}))["value"].(string)
	value, err := json.Marshal(sealed)
	testkit.Must(t, err)
	n.do(schema.MemorySet.With(&schema.MemorySetInput{Key: "vault/openai", Value: value}))
	answer := ask()
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") || strings.Contains(answer, secret) {
		t.Errorf("answered %q", answer)
	}
	if saw := <-got; saw != "Bearer "+secret || len(got) > 0 {
		t.Errorf("the upstream saw %q", saw)
	}
	end := n.row("Net.Request", `"usage":{"input_tokens":1,"output_tokens":2,"micro_usd":44,"dearest":true}`)
	if strings.Contains(string(end.Payload), "key=mine") || end.PID != n.pid {
		t.Errorf("end %+v", end)
	}

	ports, upstreams, env, bundle := n.daemon.NetworkNeeds(n.pid, func(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", 902+i) })
	if !slices.Equal(ports, []uint16{80, 443, 7000}) || !slices.Equal(upstreams, []string{"open-ai"}) || bundle != "" || len(env) != 2 ||
		env["OPENAI_BASE_URL"] != "http://127.0.0.1:902/v1" || env["PWOS_UPSTREAM_OPEN_AI"] != env["OPENAI_BASE_URL"] {
		t.Errorf("needs %v, %v, %v, %q", ports, upstreams, env, bundle)
	}

	n.stop()
	if found := testkit.FilesWith(t, secret, n.dir); found != nil {
		t.Errorf("%v hold the credential", found)
	}
	if strings.Contains(n.log.String(), secret) {
		t.Error("the log holds the credential")
	}
}

// If an upstream is intercepted, its agents get the authority's certificate in a file without a key.
func TestNetworkBundle(t *testing.T) {
	t.Parallel()
	n := openNetwork(t, func(c *config.Config) {
		c.Upstream = map[string]config.Upstream{"a": {URL: "https://api.a.test", Header: "x-key", From: "vault/a", Allow: []string{"GET /"}, Intercept: true}}
	}, schema.SpawnCapability{AllowedSyscalls: []string{"Upstream:*"}})
	_, _, env, bundle := n.daemon.NetworkNeeds(n.pid, func(int) string { return "http://127.0.0.1:902" })
	text, err := os.ReadFile(filepath.Join(filepath.Dir(bundle), "inside", filepath.Base(bundle))) // the file that an agent sees
	testkit.Must(t, err)
	if bytes.Contains(text, []byte("PRIVATE")) || !bytes.Contains(text, []byte("BEGIN CERTIFICATE")) {
		t.Errorf("bundle %.200s", text)
	}
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"} {
		if env[name] != bundle {
			t.Errorf("%s is %q", name, env[name])
		}
	}
	n.do(schema.CapabilityGrant.With(&schema.GrantInput{PID: n.pid, AllowedSyscalls: []string{"*"}}))
	if _, upstreams, env, bundle := n.daemon.NetworkNeeds(n.pid, func(int) string { return "" }); len(upstreams)+len(env) > 0 || bundle != "" {
		t.Errorf("* includes %v, %v, %q", upstreams, env, bundle)
	}
}
