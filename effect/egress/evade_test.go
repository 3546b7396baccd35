package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// metered gives the agent a budget of tokens and dollars.
func metered(c *egress.Config) {
	c.Metered = func(int64) bool { return true }
	c.Prices = price.Table{"m-*": {Input: 3, Output: 15}}
}

// TestMeteredWebsocket checks that a WebSocket to an upstream is refused if there is a budget, because its usage is not read.
func TestMeteredWebsocket(t *testing.T) {
	t.Parallel()
	for _, bounded := range []bool{true, false} {
		server, saw := model(t)
		h := open(t, withUpstream(upstream(t, server.URL)), func(c *egress.Config) {
			c.Metered = func(int64) bool { return bounded }
		})
		h.grant(nil, "Upstream:model")
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.upstreams["model"], "http://"))
		testkit.Must(t, err)
		_, err = io.WriteString(conn, "GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n")
		testkit.Must(t, err)
		in := h.await(1)[0].in.(*schema.NetRequestInput)
		if refused := in.Refused != ""; refused != bounded || len(saw.all()) > 0 == bounded {
			t.Errorf("bounded %v: refused %q, the upstream saw %q", bounded, in.Refused, saw.all())
		}
		testkit.Must(t, conn.Close())
	}
}

// TestMeteredHangUp checks that a request is charged if the client disconnects before the answer begins.
func TestMeteredHangUp(t *testing.T) {
	t.Parallel()
	asked, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(asked)
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	h := open(t, withUpstream(upstream(t, server.URL)), metered)
	h.grant(nil, "Upstream:model")
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.upstreams["model"], "http://"))
	testkit.Must(t, err)
	body := `{"model":"m-1","max_tokens":100}`
	_, err = fmt.Fprintf(conn, "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	testkit.Must(t, err)
	<-asked
	testkit.Must(t, conn.Close())
	if e := h.await(1)[0]; e.err != nil || !strings.Contains(e.data, `"status":0`) || strings.Contains(e.data, schema.NetComplete) {
		t.Errorf("entry %+v, want a request without a complete answer", e)
	}
}

// TestUnreported checks that the usage of an answer without a complete report is estimated from what arrived.
func TestUnreported(t *testing.T) {
	t.Parallel()
	answers := make(chan chan string, 1)
	server := streaming(t, answers)
	h := open(t, withUpstream(upstream(t, server.URL)), metered)
	h.grant(nil, "Upstream:model")
	chunk := "data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\n"
	body := `{"model":"m-1","stream":true}`
	for i, hangUp := range []bool{false, true} {
		next := make(chan string)
		answers <- next
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.upstreams["model"], "http://"))
		testkit.Must(t, err)
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		_, err = fmt.Fprintf(conn, "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
		testkit.Must(t, err)
		for range 5 {
			next <- chunk
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		testkit.Must(t, err)
		_, err = io.ReadFull(resp.Body, make([]byte, 5*len(chunk)))
		testkit.Must(t, err)
		if hangUp {
			testkit.Must(t, conn.Close())
		}
		close(next)
		_, _ = io.ReadAll(resp.Body)
		_ = conn.Close()
		if e := h.await(i + 1)[i]; !strings.Contains(e.data, `"output_tokens":5`) {
			t.Errorf("hung up %v: entry %s", hangUp, e.data)
		}
	}
}

// TestEstimate checks when usage is estimated from the size of an answer.
func TestEstimate(t *testing.T) {
	t.Parallel()
	const json, events = "application/json", "text/event-stream"
	object := `{"choices":[{"message":{"content":"` + strings.Repeat("x", 360) + `"}}]}` // 400 bytes
	for _, test := range []struct {
		name, typ, model, body string
		whole                  bool
		want                   *schema.NetUsage
	}{
		{"an object that breaks off", json, "m", object, false, &schema.NetUsage{Model: "m", Output: 100, MicroUSD: 1500, Estimated: true}},
		{"an object that has no report", json, "m", object, true, nil},
		{"an object of no model", json, "", object, false, nil},
		{"events without a report", events, "m", "data: {}\n\nevent: x\ndata: {}\n\n", true, &schema.NetUsage{Model: "m", Output: 2, MicroUSD: 30, Estimated: true}},
		{"events of no model", events, "", "data: {}\n\n", true, nil},
		{"events of a model that was not named", events, "", "data: {\"model\":\"m\"}\n\n", true, &schema.NetUsage{Model: "m", Output: 1, MicroUSD: 15, Estimated: true}},
		{
			"a report that breaks off", events, "m", "data: {\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}\n\n" + strings.Repeat("data: {}\n\n", 4), false,
			&schema.NetUsage{Model: "m", Input: 9, Output: 5, MicroUSD: 75, Estimated: true},
		},
		{"a report", events, "m", "data: {\"usage\":{\"output_tokens\":1}}\n\ndata: {}\n\n", true, &schema.NetUsage{Output: 1, MicroUSD: 15}},
	} {
		if diff := cmp.Diff(test.want, egress.Estimate(test.typ, test.model, test.whole, []byte(test.body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestMeteredEncoding checks that a request with an encoded body is refused if there is a budget, because the body cannot be parsed.
func TestMeteredEncoding(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		encoding         string
		bounded, refused bool
	}{{"gzip", true, true}, {"identity, zstd", true, true}, {"gzip", false, false}, {"identity", true, false}} {
		server, saw := model(t)
		h := open(t, withUpstream(upstream(t, server.URL)), func(c *egress.Config) {
			c.Metered = func(int64) bool { return test.bounded }
		})
		h.grant(nil, "Upstream:model")
		raw(t, h.upstreams["model"], fmt.Sprintf("POST /v1/chat HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: %s\r\nContent-Length: 2\r\n\r\n{}", test.encoding))
		in := h.await(1)[0].in.(*schema.NetRequestInput)
		if refused := in.Refused != ""; refused != test.refused || len(saw.all()) > 0 == test.refused {
			t.Errorf("%+v: refused %q, the upstream saw %q", test, in.Refused, saw.all())
		}
	}
}
