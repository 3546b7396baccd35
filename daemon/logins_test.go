package daemon_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestNetworkLogins: an upstream that takes a login is offered to an agent that has it, of its own or of the kernel, and its server gets
// that of the agent, or else that of the kernel, which is sealed with the host key: no SSH key of a person is needed. It is in no file.
func TestNetworkLogins(t *testing.T) {
	t.Parallel()
	const held, own = "sk-CANARY-held", "sk-CANARY-own"
	got := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("X-Api-Key") }))
	t.Cleanup(server.Close)
	n := openNetwork(t, func(c *config.Config) {
		c.Crypto.Identity = ""
		c.Upstream = map[string]config.Upstream{"openai": {URL: server.URL, Header: "X-Api-Key", From: "login:openai", Allow: []string{"GET /"}}}
	}, schema.SpawnCapability{AllowedSyscalls: []string{"Upstream:*"}})
	ask := func(address string) string {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		testkit.Must(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: mine\r\n\r\n")
		testkit.Must(t, err)
		all, err := io.ReadAll(conn)
		testkit.Must(t, err)
		return string(all)
	}
	offered := func(want int) {
		t.Helper()
		if _, names, env, _ := n.daemon.NetworkNeeds(n.pid, func(int) string { return "http://127.0.0.1:902" }); len(names) != want || len(env) != want {
			t.Errorf("there are %v, %v", names, env)
		}
	}

	offered(0) // nor the upstreams of vendors that are not in the configuration
	if answer := ask(n.upstreams["openai"]); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "pwos login openai") {
		t.Errorf("without a login: %q", answer)
	}
	listener := listening(t)
	defer n.daemon.ServeNetworkOf(n.pid, egress.Sockets{Upstreams: map[string]net.Listener{"openai": listener}}, map[string]string{"openai": own, "other": "x"})()
	if answer := ask(listener.Addr().String()); !strings.HasPrefix(answer, "HTTP/1.1 200 ") || <-got != own {
		t.Errorf("with a login of its own: %q", answer)
	}

	key, host := schema.LoginKey("openai"), "host"
	sealed := n.do(schema.CryptoSeal.With(&schema.SealInput{Plaintext: held, AAD: &key, Key: &host}))["value"].(string)
	if _, err := n.daemon.Do(schema.CryptoOpen.With(&schema.OpenInput{Value: sealed})); err == nil {
		t.Error("Crypto.Open opens what is sealed with the host key")
	}
	value, err := json.Marshal(sealed)
	testkit.Must(t, err)
	n.do(schema.MemorySet.With(&schema.MemorySetInput{Key: key, Value: value}))
	offered(1)
	for address, want := range map[string]string{n.upstreams["openai"]: held, listener.Addr().String(): own} {
		if answer := ask(address); !strings.HasPrefix(answer, "HTTP/1.1 200 ") || <-got != want {
			t.Errorf("with a login of the kernel, of which the server should get %s: %q", want, answer)
		}
	}
	n.stop()
	if found := testkit.FilesWith(t, "sk-CANARY", n.dir); found != nil || strings.Contains(n.log.String(), "sk-CANARY") {
		t.Errorf("%v or the log hold a login", found)
	}
}

// TestLoginOverBudget: a request over the budget gets 429, and 402 where agent hosts make it, which repeat what got a 429.
func TestLoginOverBudget(t *testing.T) {
	t.Parallel()
	n := openNetwork(t, func(c *config.Config) {
		at := config.Upstream{URL: "http://127.0.0.1:9", Header: "X-Api-Key", From: "login:openai", Allow: []string{"POST /"}}
		c.Upstream = map[string]config.Upstream{"openai": at}
		at.From = "vault/own"
		c.Upstream["own"] = at
	}, schema.SpawnCapability{AllowedSyscalls: []string{"Upstream:*"}, Budget: &schema.BudgetGrant{Tokens: new(int64(0))}})
	for name, want := range map[string]string{"openai": "402", "own": "429"} {
		conn, err := net.Dial("tcp", n.upstreams[name])
		testkit.Must(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		testkit.Must(t, err)
		all, err := io.ReadAll(conn)
		testkit.Must(t, err)
		if !strings.HasPrefix(string(all), "HTTP/1.1 "+want+" ") || !strings.Contains(string(all), "Pwos-Error: budget.exhausted") {
			t.Errorf("%s answers %q", name, all)
		}
	}
}
