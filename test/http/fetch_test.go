package http_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
)

// echo answers with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Mine", "yes")
	fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("Authorization"), body)
}

// TestFetch shows an answer as in appendix D: status, headers, body.
func TestFetch(t *testing.T) {
	t.Parallel()
	p := start(t, echo)
	c := p.dial()
	got := done(t, c, "Http.Fetch", object{"url": p.server.URL, "method": "POST", "body": "hello", "headers": object{"authorization": "plain"}})
	if got["status"] != 200.0 || got["body"] != "POST plain hello" || got["headers"].(object)["x-mine"] != "yes" || got["digest"] == nil {
		t.Errorf("answered %v", got)
	}
	if got := done(t, c, "Http.Fetch", object{"url": p.server.URL}); got["body"] != "GET  " {
		t.Errorf("answered %v", got)
	}
	if got := done(t, c, "Syscall.Call", object{"syscall": "fetch", "args": []any{p.server.URL}}); got["body"] != "GET  " {
		t.Errorf("answered %v", got)
	}
	for _, r := range []struct {
		data object
		why  string
	}{
		{object{}, "url is missing"},
		{object{"url": ""}, "url must not be empty"},
		{object{"url": "no url"}, "url"},
		{object{"url": p.server.URL, "method": "TRACE"}, "method must be one of GET, POST, PUT, DELETE, PATCH"},
		{object{"url": p.server.URL, "method": "PUT"}, "body is required for PUT"},
		{object{"url": p.server.URL, "timeout": 30001}, "timeout must be"},
		{object{"url": p.server.URL, "headers": object{"a": 1}}, "headers.a must be a string"},
		{object{"url": p.server.URL, "method": "PUT", "body": "x", "bodyRef": object{"scheme": "data", "path": ",x"}}, "bodyRef replaces body"},
		{object{"url": p.server.URL, "method": "PUT", "bodyRef": object{"scheme": "file", "path": "relative"}}, "bodyRef.path must be an absolute path"},
	} {
		refused(t, call(t, c, "Http.Fetch", r.data), 422, r.why)
	}
}

// TestWorkflow is the third example of appendix B, in either dialect: all answers in a chain of messages have its
// correlation, and so has the outcome in the journal.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	p := start(t, echo)
	done(t, p.dial(), "Memory.Set", object{"key": "api/token", "value": "token123"})
	for name, older := range map[string]*strings.Replacer{
		"OsMessage": strings.NewReplacer(),
		"OsEvent":   strings.NewReplacer(`"kind":`, `"type":`, `"type":`, `"name":`, `"data":`, `"payload":`),
	} {
		r := p.raw()
		r.send(older.Replace(`{"kind":"query","type":"Memory.Get","data":{"key":"/api/token"},"metadata":{"id":"msg-001","timestamp":1735000000000,"correlation":"workflow-abc"}}`))
		if got := r.read()[""]; got != "token123" || r.meta["correlation"] != "workflow-abc" || r.meta["causation"] != "msg-001" {
			t.Errorf("%s: answered %v, %v", name, got, r.meta)
		}
		r.send(older.Replace(fmt.Sprintf(`{"kind":"command","type":"Http.Fetch","data":{"url":%q,"headers":{"Authorization":"Bearer token123"}},"metadata":{"id":"msg-003","timestamp":1735000002000,"correlation":"workflow-abc","causation":"msg-001"}}`, p.server.URL)))
		if got := r.read(); got["status"] != 200.0 || got["body"] != "GET Bearer token123 " || r.meta["correlation"] != "workflow-abc" || r.meta["causation"] != "msg-003" {
			t.Errorf("%s: answered %v, %v", name, got, r.meta)
		}
		seq := fmt.Sprintf(`{"seq":%v,`, r.meta["kernel"].(object)["seq"])
		var proof string
		for line := range strings.Lines(p.Journal(p.t)) {
			if strings.HasPrefix(line, seq) {
				proof = line
			}
		}
		if !strings.Contains(proof, `"type":"Http.Fetched"`) || !strings.Contains(proof, `"correlation":"workflow-abc","causation":"msg-003"`) {
			t.Errorf("%s: the proof of the answer is %s", name, proof)
		}
	}
}

// TestHosts shows that an agent reaches only the hosts of its token, that it cannot grant more than it has, and that no
// grant opens an address that the configuration does not.
func TestHosts(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var elsewhere string
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, elsewhere, http.StatusFound)
		}
	})
	c := p.dial()
	elsewhere = strings.Replace(p.server.URL, "127.0.0.1", "127.0.0.2", 1)
	none, some := agent(t, c, nil), agent(t, c, object{"hosts": []string{"127.0.0.1:*", "*.example.com"}})
	refused(t, call(t, c, "Http.Fetch", object{"pid": none, "url": p.server.URL}), 403, "may fetch from no host")
	refused(t, call(t, c, "Http.Fetch", object{"pid": some, "url": elsewhere}), 403, "127.0.0.2")
	refused(t, call(t, c, "Http.Fetch", object{"pid": some, "url": strings.Replace(p.server.URL, "https", "http", 1)}), 403, "http")
	if n := asked.Load(); n != 0 {
		t.Errorf("the server got %d requests", n)
	}
	refused(t, call(t, c, "Http.Fetch", object{"pid": some, "url": p.server.URL + "/away"}), 403, "redirected", "127.0.0.2")
	if got := done(t, c, "Http.Fetch", object{"pid": some, "url": p.server.URL}); got["status"] != 200.0 {
		t.Errorf("answered %v", got)
	}
	for _, http := range []object{{"hosts": []string{"*"}}, {"hosts": []string{"127.0.0.2:*"}}, {"hosts": []string{}, "open": true}, {"hosts": []string{}, "plain": true}} {
		a := call(t, c, "Syscall.Spawn", object{"pid": some, "child_agent_id": "b", "capabilities": object{"allowed_syscalls": []string{"Http.Fetch"}, "http": http}})
		refused(t, a, 403, "does not hold it itself")
	}
	done(t, c, "Syscall.Spawn", object{"pid": some, "child_agent_id": "b", "capabilities": object{
		"allowed_syscalls": []string{"Http.Fetch"}, "http": object{"hosts": []string{"api.example.com", "127.0.0.1:*"}},
	}})
	refused(t, call(t, c, "Capability.Grant", object{"pid": some, "allowed_syscalls": []string{}, "http": object{"hosts": []string{"a b"}}}), 422, "http.hosts[0]")
}

// TestForbiddenAddresses shows that no caller reaches an address that the configuration does not open.
func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	p := start(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }, func(c *config.Config) { c.HTTP.Allow = nil })
	c := p.dial()
	port := p.server.URL[strings.LastIndex(p.server.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "169.254.169.254", "0.0.0.0"} {
		a := call(t, c, "Http.Fetch", object{"url": "https://" + host + port})
		if a.code != 403 && a.code != 422 {
			t.Errorf("%s: %d %s %s", host, a.code, a.text, a.Data)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server got %d requests", n)
	}
}

// TestLongBody shows that a body that is long, or not text, is in the blob directory, and that a body to send may be.
func TestLongBody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 20_000)
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "PUT":
			echo(w, r)
		case r.URL.Path == "/bytes":
			_, _ = w.Write([]byte{0xff, 0x00, 0xfe})
		default:
			fmt.Fprint(w, long)
		}
	})
	c := p.dial()
	raw := p.raw()
	a := raw.call("Http.Fetch", object{"url": p.server.URL})
	at := a["bodyRef"].(object)["path"].(string)
	if content, err := os.ReadFile(at); err != nil || string(content) != long || a["body"] != nil || !strings.HasPrefix(at, p.cfg.RuntimeDir+"/blobs/") {
		t.Errorf("%v: %d bytes, %v", a, len(content), err)
	}
	if got := done(t, c, "Http.Fetch", object{"url": p.server.URL}); got["body"] != long || got["bodyRef"] != nil {
		t.Errorf("the client did not read the reference")
	}
	if got := done(t, c, "Http.Fetch", object{"url": p.server.URL + "/bytes"}); got["bodyRef"] == nil {
		t.Errorf("answered %v", got)
	}
	got := done(t, c, "Http.Fetch", object{"url": p.server.URL, "method": "PUT", "bodyRef": object{"scheme": "file", "path": at}})
	if got["body"] != "PUT  "+long || got["sent_digest"] != a["digest"] {
		t.Errorf("sent %v, of %v", got["sent_digest"], a["digest"])
	}
	refused(t, call(t, c, "Http.Fetch", object{"url": p.server.URL, "method": "PUT", "bodyRef": object{"scheme": "file", "path": p.Path("key")}}), 403)
}

// TestBoundedAnswers shows that an endless body and a decompression bomb end the call, not the kernel, and that no data of
// them is left.
func TestBoundedAnswers(t *testing.T) {
	t.Parallel()
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		zeros := make([]byte, 64<<10)
		var to io.Writer = w
		if r.URL.Path == "/bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			to = packed
		}
		for {
			if _, err := to.Write(zeros); err != nil || r.Context().Err() != nil {
				return
			}
		}
	}, func(c *config.Config) { c.HTTP.MaxBodyBytes = 4 << 20 })
	c := p.dial()
	for _, path := range []string{"/endless", "/bomb"} {
		refused(t, call(t, c, "Http.Fetch", object{"url": p.server.URL + path, "timeout": 30000}), 502, "4194304")
	}
	if left, err := os.ReadDir(p.cfg.RuntimeDir + "/blobs"); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
