package http_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestPolicyOfRedirects: a redirect cannot evade a rule about addresses.
func TestPolicyOfRedirects(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Pointer[string]
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, *elsewhere.Load(), http.StatusFound)
		}
	}, func(cfg *config.Config) {
		cfg.File = filepath.Join(filepath.Dir(cfg.StateDir), "c", "config.toml")
		testkit.Must(t, os.MkdirAll(filepath.Dir(cfg.File), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(filepath.Dir(cfg.File), "policy.cedar"),
			[]byte(`@id("no-private") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.url like "*/private*"};`), 0o600))
	})
	c := p.dial()
	pid := agent(t, c, object{"hosts": []string{"127.0.0.1:*"}})
	for _, to := range []string{"/private/a", strings.ToUpper("https") + p.server.URL[len("https"):] + "/public/../private"} {
		elsewhere.Store(&to)
		refused(t, call(t, c, "Http.Fetch", object{"pid": pid, "url": p.server.URL + "/away"}), 403, "redirected elsewhere", `"no-private"`)
	}
	refused(t, call(t, c, "Http.Fetch", object{"pid": pid, "url": p.server.URL + "/private"}), 403, `"no-private"`)
	to := "/public"
	elsewhere.Store(&to)
	done(t, c, "Http.Fetch", object{"pid": pid, "url": p.server.URL + "/away"})
}

// TestPolicyOfBodies: a rule compares the digest and the size of a body by reference, and the judged body is the one that
// is sent.
func TestPolicyOfBodies(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	known := schema.ContentOf([]byte("known"))
	p := start(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			got.Store(int64(len(body)))
		}
	}, func(cfg *config.Config) {
		cfg.File = filepath.Join(filepath.Dir(cfg.StateDir), "c", "config.toml")
		testkit.Must(t, os.MkdirAll(filepath.Dir(cfg.File), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(filepath.Dir(cfg.File), "policy.cedar"), []byte(`
@id("short") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has bodyRef && context.args.bodyRef.size > 1000};
@id("known") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.url like "*/known*" && context.args has bodyRef && context.args.bodyRef.digest != "`+known.Digest+`"};`), 0o600))
	})
	c := p.dial()
	pid := agent(t, c, object{"hosts": []string{"127.0.0.1:*"}})
	post := func(path string, ref object, more ...any) answer {
		in := object{"pid": pid, "url": p.server.URL + path, "method": "POST", "bodyRef": ref}
		if len(more) > 0 {
			in["bodyContent"] = more[0]
		}
		got.Store(-1)
		return call(t, c, "Http.Fetch", in)
	}
	for _, one := range []struct {
		path string
		ref  object
		rule string // "": the body is sent
		size int64
	}{
		{"/a", p.put("short", strings.Repeat("a", 1000)), "", 1000},
		{"/a", p.put("long", strings.Repeat("a", 1001)), "short", -1},
		{"/a", object{"scheme": "data", "path": "," + strings.Repeat("a", 1001)}, "short", -1},
		{"/known", p.put("known", "known"), "", 5},
		{"/known", p.put("other", "other"), "known", -1},
		{"/known", object{"scheme": "data", "path": ";base64,a25vd24="}, "", 5},
	} {
		a := post(one.path, one.ref)
		if one.rule != "" {
			refused(t, a, 403, `the rule "`+one.rule+`"`)
		} else if a.code != 0 {
			t.Errorf("%s %v: %d %s", one.path, one.ref, a.code, a.text)
		}
		if got.Load() != one.size {
			t.Errorf("%s %v: %d bytes were sent, want %d", one.path, one.ref, got.Load(), one.size)
		}
	}
	if text := p.Journal(p.t); !strings.Contains(text, `"bodyContent":{"digest":"`+known.Digest+`","size":5}`) {
		t.Error("the journal has no digest of the judged body")
	}

	// The kernel does not trust the client's digest, also without a rule that reads it.
	refused(t, post("/a", p.put("claimed", strings.Repeat("a", 1001)), known), 422, "is not what bodyRef refers to")
	refused(t, call(t, c, "Http.Fetch", object{"pid": pid, "url": p.server.URL, "bodyContent": known}), 422, "goes with bodyRef")
	testkit.Must(t, os.Remove(filepath.Join(filepath.Dir(p.cfg.File), "policy.cedar")))
	done(t, c, "Policy.Reload", object{})
	if a := post("/a", p.put("judged", "known"), known); a.code != 0 || got.Load() != 5 {
		t.Errorf("a body with its correct digest: %d %s", a.code, a.text)
	}
	refused(t, post("/a", p.put("changed", "knowN"), known), 422, "nothing was sent")
	if got.Load() != -1 {
		t.Errorf("%d bytes of a changed body were sent", got.Load())
	}
	missing := post("/a", object{"scheme": "file", "path": filepath.Join(p.cfg.RuntimeDir, "blobs", "none")}, known)
	refused(t, missing, 404)
}
