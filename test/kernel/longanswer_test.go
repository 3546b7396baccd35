package kernel_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// blob writes a file to the blob directory, and returns the reference to it.
func (d *running) blob(t *testing.T, name, content string) string {
	t.Helper()
	at := filepath.Join(d.cfg.RuntimeDir, "blobs", name)
	testkit.Must(t, os.WriteFile(at, []byte(content), 0o600))
	return fmt.Sprintf(`{"scheme":"file","path":%q}`, at)
}

// TestLongAnswer: the answer of a provider that does not fit a line is passed by reference. The journal has its digest, and
// an idempotency key gives the reference again, also after a restart.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	for _, dialect := range dialects() {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			provider, caller := d.dial(t), d.dial(t)
			provider.call("Syscall.Register", strings.Replace(registering("Sum.Add", `,"output":{"type":["object","string"],"required":["n"]}`), `"query"`, `"command"`, 1), nil)
			ask := func(key string) {
				t.Helper()
				metadata := fmt.Sprintf(`{"id":"call-%s","timestamp":1,"idempotencyKey":%[1]q}`, key)
				if dialect == schema.OsEvent {
					caller.write(`{"type":"command","name":"Sum.Add","payload":{},"metadata":` + metadata + "}\n")
				} else {
					caller.write(`{"kind":"command","type":"Sum.Add","data":{},"metadata":` + metadata + "}\n")
				}
			}
			answered := func() (data, refs string) {
				t.Helper()
				a := caller.next()
				return string(a.Data) + string(a.Payload), string(a.Metadata.Refs)
			}
			complete := func(r asked, ref string) answer {
				t.Helper()
				return provider.speak(schema.OsMessage, "Syscall.Complete", fmt.Sprintf(`{"call_id":%q,"dataRef":%s}`, r.CallID, ref), "")
			}
			content := func(data string) string {
				t.Helper()
				var in struct{ ValueRef struct{ Path string } }
				testkit.Must(t, json.Unmarshal([]byte(data), &in))
				text, err := os.ReadFile(in.ValueRef.Path)
				testkit.Must(t, err)
				return string(text)
			}

			long := `{"n":"` + strings.Repeat("x", 5_000_000) + `"}`
			ask("long")
			r := provider.request(schema.OsMessage)
			ref := d.blob(t, "long", strings.Replace(long, ":", ":\n ", 1))
			if a := complete(r, ref); a.Kind != "reply" {
				t.Fatalf("%s", a.Data)
			}
			testkit.Must(t, os.Remove(filepath.Join(d.cfg.RuntimeDir, "blobs", "long")))
			long = strings.Replace(long, ":", ":  ", 1)
			first, refs := answered()
			if refs != `{"*":"json"}` || content(first) != long {
				t.Errorf("answered %.200s, refs %s", first, refs)
			}
			ask("text")
			text := strings.Repeat("ä", 2_000_000)
			complete(provider.request(schema.OsMessage), d.blob(t, "text.txt", text))
			if data, refs := answered(); refs != `{"*":"text"}` || content(data) != text {
				t.Errorf("answered %.200s, refs %s", data, refs)
			}
			ask("short")
			complete(provider.request(schema.OsMessage), d.blob(t, "short", `{"n":1}`))
			if data, refs := answered(); data != `{"n":1}` || refs != "" {
				t.Errorf("what is short: %.200s, refs %s", data, refs)
			}

			ask("wrong")
			r = provider.request(schema.OsMessage)
			for name, tt := range map[string]struct {
				data, want string
				code       int
			}{
				"nothing":     {fmt.Sprintf(`{"call_id":%q}`, r.CallID), "one of the three", 422},
				"both":        {fmt.Sprintf(`{"call_id":%q,"data":1,"dataRef":%s}`, r.CallID, ref), "one of the three", 422},
				"gone":        {fmt.Sprintf(`{"call_id":%q,"dataRef":%s}`, r.CallID, ref), "", 404},
				"elsewhere":   {fmt.Sprintf(`{"call_id":%q,"dataRef":{"scheme":"file","path":"/etc/passwd"}}`, r.CallID), "outside of the directory", 403},
				"no path":     {fmt.Sprintf(`{"call_id":%q,"dataRef":{"scheme":"file","path":"x"}}`, r.CallID), "dataRef", 422},
				"no JSON":     {fmt.Sprintf(`{"call_id":%q,"dataRef":%s}`, r.CallID, d.blob(t, "odd", `{"n":`)), "neither one JSON value", 422},
				"too deep":    {fmt.Sprintf(`{"call_id":%q,"dataRef":%s}`, r.CallID, d.blob(t, "deep", strings.Repeat("[", 60)+strings.Repeat(" ", 1<<20)+strings.Repeat("]", 60))), "nested deeper", 422},
				"too long":    {fmt.Sprintf(`{"call_id":%q,"dataRef":%s}`, r.CallID, d.blob(t, "huge", `"`+strings.Repeat("x", 16<<20)+`"`)), "16777216", 422},
				"nobody's":    {fmt.Sprintf(`{"call_id":"x","dataRef":%s}`, d.blob(t, "fine", `1`)), "waits for this connection", 404},
				"an error as": {fmt.Sprintf(`{"call_id":%q,"error":{"message":"m"},"dataRef":%s}`, r.CallID, ref), "one of the three", 422},
			} {
				if f := provider.failure(provider.speak(schema.OsMessage, "Syscall.Complete", tt.data, "")); f.Code != float64(tt.code) || !strings.Contains(f.Message, tt.want) {
					t.Errorf("%s: %+v, want %d %s", name, f, tt.code, tt.want)
				}
			}
			complete(r, d.blob(t, "unfit", `{"m":"`+strings.Repeat("x", 2_000_000)+`"}`))
			if data, _ := answered(); !strings.Contains(data, "output schema does not allow") {
				t.Errorf("what the schema does not allow: %.200s", data)
			}

			d.restart(t)
			caller = d.dial(t)
			ask("long")
			if again, refs := answered(); again != first || refs != `{"*":"json"}` {
				t.Errorf("again: %.200s, refs %s, want %s", again, refs, first)
			}
			journal := ""
			files, err := filepath.Glob(filepath.Join(d.cfg.StateDir, "journal", "*.ndjson"))
			for _, file := range files {
				lines, failed := os.ReadFile(file)
				if journal += string(lines); failed != nil {
					err = failed
				}
			}
			sum := sha256.Sum256([]byte(long))
			if digest := "sha256-" + base64.StdEncoding.EncodeToString(sum[:]); err != nil || strings.Contains(journal, "xxxx") || !strings.Contains(journal, digest) {
				t.Errorf("the journal has the answer, or not its digest: %v", err)
			}
		})
	}
}
