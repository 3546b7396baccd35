package http_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// put writes a file of a client into the blob directory, and returns a reference to it.
func (p *place) put(name, content string) object {
	p.t.Helper()
	at := filepath.Join(p.cfg.RuntimeDir, "blobs", name)
	testkit.Must(p.t, os.WriteFile(at, []byte(content), 0o600))
	return object{"scheme": "file", "path": at}
}

// TestByReference shows that a value that is too long for a line is stored by reference, is returned by reference and
// complete through the client, and is in the journal: it outlives the blob and the daemon.
func TestByReference(t *testing.T) {
	t.Parallel()
	p := start(t, text(""))
	c := p.dial()
	long := `{"text":"` + strings.Repeat("long ", 199_990) + `","n":1.50}`
	done(t, c, "Memory.Set", object{"key": "long", "valueRef": p.put("mine.json", "\n"+long+"\n")})
	done(t, c, "Memory.Set", object{"key": "short", "valueRef": object{"scheme": "data", "path": "application/json,[1]"}})
	for range 2 {
		if got := call(t, c, "Memory.Get", object{"key": "long"}); string(got.Data) != long {
			t.Errorf("%d bytes came back", len(got.Data))
		}
		if got := call(t, c, "Memory.Get", object{"key": "short"}); string(got.Data) != "[1]" {
			t.Errorf("came back as %s", got.Data)
		}
		p.stop()
		testkit.Must(t, os.RemoveAll(filepath.Join(p.cfg.RuntimeDir, "blobs")))
		p.begin()
		c = p.dial()
	}
	r := p.raw()
	at := r.call("Memory.Get", object{"key": "long"})["valueRef"].(object)["path"].(string)
	if content, err := os.ReadFile(at); err != nil || string(content) != long {
		t.Errorf("%s: %d bytes, %v", at, len(content), err)
	}
	if refs := r.meta["refs"].(object); refs["*"] != "json" {
		t.Errorf("the metadata says %v", refs)
	}
}

// TestTextByReference shows that a blob of the kernel can be passed back by reference: the text of a string as a text,
// whatever it contains, and a body that is not JSON as a text.
func TestTextByReference(t *testing.T) {
	t.Parallel()
	page := "<p>" + strings.Repeat("x", 100_000)
	p := start(t, text("%s", page))
	c, r := p.dial(), p.raw()
	digits := strings.Repeat("1", 100_000)
	quoted, err := json.Marshal(digits)
	testkit.Must(t, err)
	done(t, c, "Memory.Set", object{"key": "digits", "valueRef": p.put("digits.json", string(quoted))})
	ref := r.call("Memory.Get", object{"key": "digits"})["valueRef"]
	done(t, c, "Memory.Set", object{"key": "again", "valueRef": ref})
	if got := call(t, c, "Memory.Get", object{"key": "again"}); string(got.Data) != string(quoted) {
		t.Errorf("a text of digits came back as %.20s, %d bytes", got.Data, len(got.Data))
	}
	done(t, c, "Memory.Set", object{"key": "page", "valueRef": r.call("Http.Fetch", object{"url": p.server.URL})["bodyRef"]})
	var got string
	testkit.Must(t, json.Unmarshal(call(t, c, "Memory.Get", object{"key": "page"}).Data, &got))
	if got != page {
		t.Errorf("a page came back as %.20q, %d bytes", got, len(got))
	}
}

// TestMessagesByReference shows the same for the payload of a message.
func TestMessagesByReference(t *testing.T) {
	t.Parallel()
	p := start(t, text(""))
	c := p.dial()
	a, b := agent(t, c, nil), agent(t, c, nil)
	long := strings.Repeat("x", 100_000)
	quoted, err := json.Marshal(long)
	testkit.Must(t, err)
	ref := p.put("payload", string(quoted))
	done(t, c, "Syscall.SendMsg", object{"pid": a, "receiver_pid": b, "payloadRef": ref})
	done(t, c, "Ipc.Broadcast", object{"pid": a, "payloadRef": ref})
	var n int
	for range 2 {
		for _, m := range done(t, c, "Ipc.Receive", object{"pid": b})["messages"].([]any) {
			n++
			if m.(object)["payload"] != long {
				t.Error("the payload is another")
			}
		}
	}
	if n != 2 {
		t.Errorf("%d messages were received", n)
	}
	follower := p.raw()
	follower.call("Ipc.Subscribe", object{"pid": b})
	done(t, c, "Syscall.SendMsg", object{"pid": a, "receiver_pid": b, "payloadRef": ref})
	pushed := follower.read()
	at, ok := pushed["payloadRef"].(object)
	if !ok || follower.meta["refs"].(object)["payload"] != "text" {
		t.Fatalf("pushed %.300v, %v", pushed, follower.meta)
	}
	if content, err := os.ReadFile(at["path"].(string)); err != nil || string(content) != long {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// TestChangesByReference commits a delta that does not fit a line, and one without changes; other values than objects are
// refused.
func TestChangesByReference(t *testing.T) {
	t.Parallel()
	p := start(t, text(""))
	c := p.dial()
	a := agent(t, c, nil, "Syscall.CommitDelta")
	long := strings.Repeat("x", 100_000)
	done(t, c, "Syscall.CommitDelta", object{"pid": a, "changesRef": p.put("changes", `{"long":"`+long+`","short":1}`)})
	done(t, c, "Syscall.CommitDelta", object{"pid": a})
	memory := done(t, c, "Syscall.GetState", object{"target_pid": a})["memory"].(object)
	if state := memory["state"].(object); state["long"] != long || state["short"] != 1.0 || memory["deltas"] != 2.0 {
		t.Errorf("the state has %d members, of %v deltas", len(state), memory["deltas"])
	}
	refused(t, call(t, c, "Syscall.CommitDelta", object{"pid": a, "changesRef": p.put("list", "[1]")}), 422, "changes")
	refused(t, call(t, c, "Syscall.CommitDelta", object{"pid": a, "changes": object{}, "changesRef": p.put("one", "{}")}), 422, "one of the two")
}

// TestRepliesThatDoNotFit shows that a line is never longer than the limit, for any answer.
func TestRepliesThatDoNotFit(t *testing.T) {
	t.Parallel()
	p := start(t, text(""))
	r := p.raw()
	payload := strings.Repeat("p", 16_200) // too long together with the other members of an answer
	got := r.call("Syscall.Ping", object{"payload": payload})
	at, ok := got["payloadRef"].(object)
	if !ok {
		t.Fatalf("answered %.100v", got)
	}
	if content, err := os.ReadFile(at["path"].(string)); err != nil || string(content) != payload {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	if refs := r.meta["refs"].(object); refs["payload"] != "text" {
		t.Errorf("the metadata says %v", refs)
	}
	if got := done(t, p.dial(), "Syscall.Ping", object{"payload": payload}); got["payload"] != payload {
		t.Error("the client did not read the reference")
	}
}

// TestReferencesThatAreRefused shows that a reference can name only blobs of its caller's origin.
func TestReferencesThatAreRefused(t *testing.T) {
	t.Parallel()
	p := start(t, text(""))
	c := p.dial()
	blobs := filepath.Join(p.cfg.RuntimeDir, "blobs")
	testkit.Must(t, os.WriteFile(p.Path("outside"), []byte(`"secret"`), 0o600))
	testkit.Must(t, os.Symlink(p.Path("outside"), filepath.Join(blobs, "link")))
	testkit.Must(t, os.Mkdir(filepath.Join(blobs, "folder"), 0o700))
	good, long := p.put("good", "1"), p.put("long", `"`+strings.Repeat("x", 1_000_000)+`"`)
	deep := p.put("deep", strings.Repeat("[", 63)+strings.Repeat("]", 63))
	file := func(path string) object { return object{"scheme": "file", "path": path} }
	for name, tt := range map[string]struct {
		data object
		code int
	}{
		"outside":      {object{"valueRef": file(p.Path("outside"))}, 403},
		"a link":       {object{"valueRef": file(filepath.Join(blobs, "link"))}, 403},
		"a folder":     {object{"valueRef": file(filepath.Join(blobs, "folder"))}, 403},
		"not there":    {object{"valueRef": file(filepath.Join(blobs, "none"))}, 404},
		"dots":         {object{"valueRef": file(blobs + "/../../outside")}, 422},
		"relative":     {object{"valueRef": file("good")}, 422},
		"https":        {object{"valueRef": object{"scheme": "https", "authority": "example.com", "path": "/"}}, 422},
		"no pointer":   {object{"valueRef": "good"}, 422},
		"both":         {object{"valueRef": good, "value": 1}, 422},
		"neither":      {object{}, 422},
		"too long":     {object{"valueRef": long}, 422},
		"too deep":     {object{"valueRef": deep}, 422},
		"half JSON":    {object{"valueRef": p.put("half", `{"a":1`)}, 422},
		"no text":      {object{"valueRef": p.put("bytes", "\xff")}, 422},
		"unsealed":     {object{"key": "vault/x", "valueRef": p.put("plain", `"plain"`)}, 422},
		"another name": {object{"keyRef": good}, 422},
	} {
		if tt.data["key"] == nil {
			tt.data["key"] = "k"
		}
		if a := call(t, c, "Memory.Set", tt.data); a.code != tt.code || strings.Contains(a.text, "secret") {
			t.Errorf("%s: %d %s, want %d", name, a.code, a.text, tt.code)
		}
	}
	refused(t, call(t, c, "Memory.Get", object{"key": "k"}), 404)
}

// TestBlobsGo shows that an unused blob is removed after its time to live.
func TestBlobsGo(t *testing.T) {
	t.Parallel()
	p := start(t, text("%s", strings.Repeat("x", 100_000)), func(c *config.Config) { c.Blobs.TTL = config.Duration(time.Second) })
	got := p.raw().call("Http.Fetch", object{"url": p.server.URL})
	at := got["bodyRef"].(object)["path"].(string)
	testkit.Eventually(t, "the blob is removed", func() bool {
		_, err := os.Stat(at)
		return os.IsNotExist(err)
	})
}

// TestBlobQuota shows that a full directory is a 507 for the caller, and that the kernel continues.
func TestBlobQuota(t *testing.T) {
	t.Parallel()
	p := start(t, text("%s", strings.Repeat("x", 100_000)), func(c *config.Config) { c.Blobs.DirBytes = 50_000 })
	c := p.dial()
	refused(t, call(t, c, "Http.Fetch", object{"url": p.server.URL}), 507)
	for range 3 {
		done(t, c, "Syscall.Ping", object{"payload": strings.Repeat("p", 16_200)})
	}
	refused(t, call(t, c, "Syscall.Ping", object{"payload": strings.Repeat("p", 16_200)}), 507, "does not fit a line")
	done(t, c, "Syscall.Ping", object{"payload": 1})
}
