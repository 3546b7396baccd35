package egress_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestOwnUpstream checks an upstream that only one agent has: it uses Dial, needs no credential, and is closed with the agent. Only the
// kernel's own answers have ErrorHeader.
func TestOwnUpstream(t *testing.T) {
	t.Parallel()
	server, saw := model(t)
	closed, secret := make(chan struct{}), ""
	var dialled []string
	refused := fault.UpstreamLogin.New("log in")
	own := upstream(t, "http://elsewhere.test:7000", func(c *egress.UpstreamConfig) {
		c.Name, c.Secret = "mcp.docs", func(context.Context) (string, error) { return secret, nil }
		c.Dial = func(ctx context.Context, to fetch.Endpoint) (net.Conn, error) {
			if dialled = append(dialled, to.String()); len(dialled) > 1 {
				return nil, fault.HTTPAddress.New("it is closed")
			}
			var d net.Dialer
			return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
		}
		c.Answered = func(bore string, status int, header http.Header) error {
			if bore == "refused" && status == http.StatusOK && header.Get("Content-Type") == "application/json" {
				return refused
			}
			return nil
		}
		c.Close = func() { close(closed) }
	})
	h := openWith(t, []*egress.Upstream{own})
	get := func() string {
		return raw(t, h.upstreams["mcp.docs"], "GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Key: mine\r\nAuthorization: Bearer mine\r\nConnection: close\r\n\r\n")
	}
	if answer := get(); !strings.HasPrefix(answer, "HTTP/1.1 403 ") || !strings.Contains(answer, "\r\nPwos-Error: upstream.forbidden\r\n") || !strings.Contains(answer, "--add Upstream:mcp.docs") {
		t.Errorf("without a grant: %q", answer)
	}
	h.grant(nil, "Upstream:mcp.docs")
	if answer := get(); !strings.HasPrefix(answer, "HTTP/1.1 200 ") || strings.Contains(answer, "Pwos-Error") || !strings.Contains(answer, "\r\nContent-Type: application/json\r\n") {
		t.Errorf("without a credential: %q", answer)
	}
	secret = "refused"
	if answer := get(); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "\r\nPwos-Error: upstream.login\r\n") || !strings.HasSuffix(answer, "log in\n") {
		t.Errorf("refused: %q", answer)
	}
	saw.mu.Lock()
	lines := strings.Join(saw.lines, "\n")
	saw.mu.Unlock()
	if lines != "GET /v1/models key=[] auth=[] cookie=[] other=[] body=\nGET /v1/models key=[\"refused\"] auth=[] cookie=[] other=[] body=" {
		t.Errorf("the server saw %s", lines)
	}
	server.CloseClientConnections()
	if answer := get(); !strings.HasPrefix(answer, "HTTP/1.1 403 ") || !strings.HasSuffix(answer, "it is closed\n") {
		t.Errorf("an address that is closed: %q", answer)
	}
	h.stop()
	<-closed
	if strings.Join(dialled, " ") != "elsewhere.test:7000 elsewhere.test:7000" {
		t.Errorf("dialled %v", dialled)
	}
	entries := h.await(4)
	if last := entries[2]; last.err == nil || last.err.ID != refused.ID {
		t.Errorf("the journal has %+v", last)
	}
}
