package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestMemory writes and reads values of every kind: bytes are returned unchanged, under either form of the key.
func TestMemory(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for i, value := range []string{`null`, `1.50`, `1e2`, `"\u00e9x"`, `{"b":1,"a":[ ]}`, `123456789012345678901234567890`, `false`} {
		key := fmt.Sprintf("notes/%d", i)
		c.call("Memory.Set", fmt.Sprintf(`{"key":%q,"value":%s}`, key, value), nil)
		if a := c.call("Memory.Get", fmt.Sprintf(`{"key":"/%s"}`, key), nil); string(a.Data) != value {
			t.Errorf("%s: got %s, want %s", key, a.Data, value)
		}
	}
	var page struct {
		Keys []string `json:"keys"`
		Next string   `json:"next"`
	}
	c.call("Memory.List", `{"prefix":"notes/","limit":4}`, &page)
	if len(page.Keys) != 4 || page.Keys[0] != "/notes/0" || page.Next == "" {
		t.Fatalf("first page: %+v", page)
	}
	cursor, _ := json.Marshal(page.Next)
	page.Next = ""
	c.call("Memory.List", fmt.Sprintf(`{"prefix":"/notes/","limit":4,"cursor":%s}`, cursor), &page)
	if got := strings.Join(page.Keys, " "); got != "/notes/4 /notes/5 /notes/6" || page.Next != "" {
		t.Errorf("second page: %s, next %q", got, page.Next)
	}
	c.call("Memory.Delete", `{"key":"notes/0"}`, nil)
	for _, typ := range []string{"Memory.Get", "Memory.Delete"} {
		for _, key := range []string{"notes/0", "/notes/0"} { // as it was written
			if got := c.refused(404, typ, fmt.Sprintf(`{"key":%q}`, key)); got != "Key not found: "+key {
				t.Errorf("%s: %q", typ, got)
			}
		}
	}
}

// TestMemoryRules tries writes that are forbidden: by PROTOCOL 5's forms of keys, in the vault, and in proc.
func TestMemoryRules(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for _, key := range []string{"", "/", "a//b", "a/", "//a", ".", "a/../b", "a/./b", "a\tb", "\u0085", strings.Repeat("k", 1025)} {
		text, _ := json.Marshal(key)
		c.refused(422, "Memory.Set", fmt.Sprintf(`{"key":%s,"value":1}`, text), "key")
	}
	c.call("Memory.Set", fmt.Sprintf(`{"key":"/%s","value":1}`, strings.Repeat("k", 1024)), nil)

	for _, value := range []string{`1`, `null`, `"secret-word"`, `"pwenc:v2:x"`, `{"pwenc:v1:":1}`} {
		if got := c.refused(422, "Memory.Set", fmt.Sprintf(`{"key":"vault/k","value":%s}`, value), "pwenc:v1:"); strings.Contains(got, "secret-word") {
			t.Errorf("the refusal tells the secret: %q", got)
		}
	}
	c.call("Memory.Set", `{"key":"/vault/k","value":"pwenc:v1:x"}`, nil)

	for _, typ := range []string{"Memory.Set", "Memory.Delete"} {
		data := map[string]string{"Memory.Set": `{"key":"proc/x","value":1}`, "Memory.Delete": `{"key":"proc/cmdline"}`}[typ]
		c.refused(403, typ, data, "read-only")
	}
	pid := c.spawn(0, `{"allowed_syscalls":["Memory.*"]}`)
	for key, want := range map[string]string{
		"proc/cmdline": `"origin":`, "proc/meminfo": `"keys":`,
		"proc/self/status": fmt.Sprintf(`"pid":%d,`, pid), fmt.Sprintf("/proc/%d/status", pid): `"state":"READY"`,
	} {
		if a := c.call("Memory.Get", fmt.Sprintf(`{"pid":%d,"key":%q}`, pid, key), nil); !strings.Contains(string(a.Data), want) {
			t.Errorf("%s: %s lacks %s", key, a.Data, want)
		}
	}
	c.refused(404, "Memory.Get", `{"key":"proc/99/status"}`, "Key not found: ")
}
