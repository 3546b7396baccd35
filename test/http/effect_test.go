package http_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// drip returns a server that sends one byte at a time, until end is closed or its caller disconnects.
func drip(end <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for {
			_, _ = fmt.Fprint(w, ".") // the caller may have disconnected
			w.(http.Flusher).Flush()
			select {
			case <-end:
				return
			case <-r.Context().Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// TestSlowServer shows that during a slow fetch the caller's other connection is served, and that later frames on the same
// connection run and are answered after the fetch.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	p := start(t, drip(end))
	slow, c := p.raw(), p.dial()
	slow.write("Http.Fetch", object{"url": p.server.URL, "timeout": 30000})
	slow.write("Memory.Set", object{"key": "k", "value": 2})
	testkit.Eventually(t, "the fetch is in flight", func() bool { return strings.Contains(p.Journal(p.t), `"type":"Http.Fetch"`) })
	for i := range 20 {
		done(t, c, "Memory.Set", object{"key": "k", "value": 1})
		done(t, c, "Syscall.Ping", object{"payload": i})
	}
	close(end)
	if got := slow.read(); got["status"] != 200.0 {
		t.Errorf("answered %v", got)
	}
	if got := slow.read(); got["success"] != true {
		t.Errorf("answered %v", got)
	}
	if got := call(t, c, "Memory.Get", object{"key": "k"}); string(got.Data) != "2" {
		t.Errorf("the frame after the fetch ran before it: %s", got.Data)
	}
}

// TestTimeout shows that a fetch from a server that never ends fails with 504 after its timeout, or after 5 s, and that a
// timeout of 30 s is the longest.
func TestTimeout(t *testing.T) {
	t.Parallel()
	p := start(t, drip(nil))
	for within, data := range map[string]object{
		"did not finish within 500ms: ": {"url": p.server.URL, "timeout": 500},
		"did not finish within 5s: ":    {"url": p.server.URL},
	} {
		t.Run(within, func(t *testing.T) {
			t.Parallel()
			r := p.raw()
			r.write("Http.Fetch", data)
			if got := r.read(); got["code"] != 504.0 || !strings.Contains(fmt.Sprint(got["message"]), within) {
				t.Errorf("answered %v", got)
			}
		})
	}
	quick := start(t, echo)
	c := quick.dial()
	done(t, c, "Http.Fetch", object{"url": quick.server.URL, "timeout": 30000})
	refused(t, call(t, c, "Http.Fetch", object{"url": quick.server.URL, "timeout": 30001}), 422, "timeout must be", "at most 30000")
}

// hanging is a server that does not answer until its caller disconnects.
type hanging struct{ asked, left atomic.Int64 }

func (h *hanging) serve(_ http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	<-r.Context().Done()
	h.left.Add(1)
}

// TestHangUp shows that a fetch ends with its caller, and that its outcome is journaled.
func TestHangUp(t *testing.T) {
	t.Parallel()
	var h hanging
	p := start(t, h.serve)
	r := p.raw()
	r.write("Http.Fetch", object{"url": p.server.URL, "timeout": 30000})
	testkit.Eventually(t, "the server gets the request", func() bool { return h.asked.Load() == 1 })
	testkit.Must(t, r.Conn.Close())
	testkit.Eventually(t, "the connection to the server is closed", func() bool { return h.left.Load() == 1 })
	testkit.Eventually(t, "the outcome is in the journal", func() bool {
		return strings.Contains(p.Journal(p.t), "Http.Fetch was stopped: its connection is closed")
	})
}

// TestShutdown shows that a fetch ends with the kernel, and that its caller gets an error.
func TestShutdown(t *testing.T) {
	t.Parallel()
	var h hanging
	p := start(t, h.serve)
	r := p.raw()
	r.write("Http.Fetch", object{"url": p.server.URL, "timeout": 30000})
	testkit.Eventually(t, "the server gets the request", func() bool { return h.asked.Load() == 1 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.stop()
	}()
	if got := r.read(); got["code"] != 503.0 {
		t.Errorf("answered %v", got)
	}
	_ = r.Conn.Close()
	<-stopped
}

// TestSealedHeader shows that a sealed value is opened only for a token that allows it, and is nowhere in plain text.
func TestSealedHeader(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-that-nobody-writes-down"
	var last atomic.Value
	p := start(t, func(_ http.ResponseWriter, r *http.Request) { last.Store(r.Header.Get("Authorization")) })
	c := p.dial()
	sealed := done(t, c, "Crypto.Seal", object{"plaintext": secret})["value"].(string)
	ask := object{"url": p.server.URL, "headers": object{"authorization": sealed}}
	may := agent(t, c, object{"hosts": []string{"127.0.0.1:*"}, "open": true})
	mayNot := agent(t, c, object{"hosts": []string{"127.0.0.1:*"}})
	ask["pid"] = mayNot
	refused(t, call(t, c, "Http.Fetch", ask), 403)
	if last.Load() != nil {
		t.Errorf("the server was sent %v", last.Load())
	}
	ask["pid"] = may
	done(t, c, "Http.Fetch", ask)
	if last.Load() != secret {
		t.Errorf("the server was sent %v", last.Load())
	}
	journal := p.Journal(p.t)
	if strings.Contains(journal, secret) || !strings.Contains(journal, sealed) {
		t.Errorf("the journal has the secret: %t, the sealed value: %t", strings.Contains(journal, secret), strings.Contains(journal, sealed))
	}
}

// TestKeyedFetch shows that a second fetch with the same key is not made, before and after a restart, whether the first
// outcome is an answer or an error; nor is one in flight repeated.
func TestKeyedFetch(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	let := make(chan struct{})
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		switch r.URL.Path {
		case "/wait":
			<-let
		case "/cut":
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, n)
	})
	c := p.dial()
	ok, cut := object{"url": p.server.URL}, object{"url": p.server.URL + "/cut"}
	first := done(t, c, "Http.Fetch", ok, "ok")
	failed := call(t, c, "Http.Fetch", cut, "cut")
	refused(t, failed, 502)
	again := func() {
		t.Helper()
		before := asked.Load()
		if got := done(t, c, "Http.Fetch", ok, "ok"); got["body"] != first["body"] {
			t.Errorf("answered %v, want %v", got, first)
		}
		refused(t, call(t, c, "Http.Fetch", cut, "cut"), 502, failed.text)
		refused(t, call(t, c, "Http.Fetch", cut, "ok"), 409, "another message")
		if asked.Load() != before {
			t.Error("the server got a second request")
		}
	}
	again()
	p.stop()
	p.begin()
	c = p.dial()
	again()

	answered := make(chan answer)
	go func() { answered <- call(t, c, "Http.Fetch", object{"url": p.server.URL + "/wait"}, "wait") }()
	before := asked.Load()
	testkit.Eventually(t, "the server gets the request", func() bool { return asked.Load() > before || strings.Contains(p.Journal(p.t), "/wait") })
	refused(t, call(t, p.dial(), "Http.Fetch", object{"url": p.server.URL + "/wait"}, "wait"), 409, "still being carried out")
	close(let)
	if a := <-answered; a.code != 0 {
		t.Errorf("%d %s", a.code, a.text)
	}
}

// TestKilled shows the state of a fetch after a kill: its outcome is unknown, in the journal and as the answer to its key,
// and the request is not repeated.
func TestKilled(t *testing.T) {
	t.Parallel()
	var h hanging
	p := newPlace(t, h.serve)
	testkit.Must(t, os.WriteFile(p.Path("config.toml"), fmt.Appendf(nil, "[http]\nallow = [\"127.0.0.0/8\"]\nca_file = %q\n", p.Path("ca.pem")), 0o600))
	kill := p.launch()
	r := p.raw()
	r.send(fmt.Sprintf(`{"kind":"command","type":"Http.Fetch","data":{"timeout":30000,"url":%q},"metadata":{"id":"mine","timestamp":1,"idempotencyKey":"k"}}`, p.server.URL))
	testkit.Eventually(t, "the server gets the request", func() bool { return h.asked.Load() == 1 })
	kill()
	for life := range 2 {
		kill = p.launch()
		c := p.dial()
		refused(t, call(t, c, "Http.Fetch", object{"url": p.server.URL, "timeout": 30000}, "k"), 500, "outcome unknown")
		if n := h.asked.Load(); n != 1 {
			t.Errorf("life %d: the server got %d requests", life, n)
		}
		journal := p.Journal(p.t)
		if n := strings.Count(journal, `"type":"Http.Fetched"`); n != 1 || !strings.Contains(journal, `"causation":"mine"`) {
			t.Errorf("life %d: the journal has %d outcomes", life, n)
		}
		kill()
	}
}

// launch starts a daemon as a process, and returns a function that kills it.
func (p *place) launch() (kill func()) {
	p.t.Helper()
	d := testkernel.Self(p.t)
	d.Dir = p.Dir
	running := d.Start(p.t)
	return func() { running.Kill(p.t) }
}
