package state_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// oldState has a journal, a snapshot, and a configuration of the tree before errors had ids, with the answers of that kernel.
// record.py created them.
const oldState = "testdata/oldstate"

// The state of an older kernel, from the journal alone and from a snapshot, gives its answers.
func TestState(t *testing.T) {
	t.Parallel()
	for name, starts := range map[string]int{"replayed": 1, "snapshot": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyOldState(t)
			c := beginCopy(t, dir, starts)
			sameAnswers(t, c, "queries.ndjson")
			var proof schema.AuditVerifyOutput
			into(t, c, schema.KindQuery, "Audit.Verify", `{}`, &proof)
			if !proof.OK {
				t.Errorf("the journal does not verify: %+v", proof)
			}
			var sealed string
			into(t, c, schema.KindQuery, "Memory.Get", `{"key":"vault/token"}`, &sealed)
			var opened schema.OpenOutput
			into(t, c, schema.KindQuery, "Crypto.Open", fmt.Sprintf(`{"value":%q}`, sealed), &opened)
			if opened.Plaintext != "swordfish" {
				t.Errorf("opened %q", opened.Plaintext)
			}
			sameAnswers(t, c, "mail.ndjson")
		})
	}
}

// Across the versions the same key and body gets the first outcome, another body a conflict, and a call that was refused
// before it ran can be tried again.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	dir := copyOldState(t)
	retime(t, filepath.Join(dir, "state"), time.Now())
	sameAnswers(t, beginCopy(t, dir, 1), "repeats.ndjson")
}

// copyOldState returns a copy of oldState.
func copyOldState(t testing.TB) string {
	t.Helper()
	dir := testkit.Dir(t)
	testkit.Must(t, os.CopyFS(dir, os.DirFS(oldState)))
	testkit.Must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	}))
	file := filepath.Join(dir, "config.toml")
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("@DIR@"), []byte(dir)), 0o600))
	return dir
}

// retime moves the entries of the journal to the present, since a key expires after a day. It removes the proofs of the old
// entries.
func retime(t testing.TB, state string, now time.Time) {
	t.Helper()
	for _, name := range []string{"projections.db", "journal/head", "journal/checkpoints"} {
		testkit.Must(t, os.Remove(filepath.Join(state, name)))
	}
	file := filepath.Join(state, "journal", "00000000000000000001.ndjson")
	text, err := os.ReadFile(file)
	testkit.Must(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	written := regexp.MustCompile(`"time":(\d+)`)
	prev := strings.Repeat("0", 64)
	chained := regexp.MustCompile(`"prev":"[0-9a-f]{64}"`)
	var out strings.Builder
	last, err := strconv.ParseInt(written.FindStringSubmatch(lines[len(lines)-1])[1], 10, 64)
	testkit.Must(t, err)
	for _, line := range lines {
		at, err := strconv.ParseInt(written.FindStringSubmatch(line)[1], 10, 64)
		testkit.Must(t, err)
		line = replaceFirst(written, line, fmt.Sprintf(`"time":%d`, at-last+now.UnixMilli()))
		line = replaceFirst(chained, line, fmt.Sprintf(`"prev":%q`, prev))
		sum := sha256.Sum256([]byte(line))
		prev = hex.EncodeToString(sum[:])
		out.WriteString(line + "\n")
	}
	testkit.Must(t, os.WriteFile(file, []byte(out.String()), 0o600))
}

func replaceFirst(what *regexp.Regexp, in, with string) string {
	at := what.FindStringIndex(in)
	return in[:at[0]] + with + in[at[1]:]
}

// beginCopy makes another kernel of the copy, as "pwos restore --here" does, starts it, and connects to it.
func beginCopy(t *testing.T, dir string, starts int) *client.Client {
	t.Helper()
	nothing := func(string) string { return "" }
	cfg := config.Default(nothing, os.Getuid(), dir)
	file := filepath.Join(dir, "config.toml")
	testkit.Must(t, cfg.Load(file, true, nothing))
	cfg.RuntimeDir, cfg.StateDir = filepath.Join(dir, "r"), filepath.Join(dir, "state")

	refused := daemon.New(cfg, nil, slog.New(slog.DiscardHandler))
	if err := errors.Join(refused.Open(t.Context()), refused.Close()); !errors.Is(err, fault.StateCopied) {
		t.Fatalf("a copy: got %v, want fault.StateCopied", err)
	}
	args := []string{"--config", file, "--runtime-dir", cfg.RuntimeDir, "--state-dir", cfg.StateDir}
	_, err := offline.Restore(t.Context(), args, nothing, io.Discard, false)
	testkit.Must(t, err)

	for range starts - 1 {
		testkernel.Start(t, cfg)()
		if _, err := os.Stat(filepath.Join(cfg.StateDir, "projections.db")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the older kernel's projections: %v", err)
		}
		if _, err := os.Stat(filepath.Join(cfg.StateDir, "projections", "process.snapshot")); err != nil {
			t.Error(err)
		}
	}
	testkernel.Start(t, cfg)
	return testkernel.Dial(t, cfg.RuntimeDir)
}

// recorded is a frame, and the older kernel's answer.
type recorded struct {
	Frame  json.RawMessage
	Answer struct {
		Kind string
		Data any
	}
}

// sameAnswers sends the frames of a file and fails if an answer differs. An answer may have more members than the older one.
// For an error only the code is compared.
func sameAnswers(t *testing.T, c *client.Client, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(oldState, file))
	testkit.Must(t, err)
	for line := range strings.Lines(string(text)) {
		var r recorded
		testkit.Must(t, json.Unmarshal([]byte(line), &r))
		var frame bytes.Buffer
		testkit.Must(t, json.Compact(&frame, r.Frame))
		m, failure := schema.Decode(frame.Bytes(), schema.OsMessage)
		if failure != nil {
			t.Fatal(failure)
		}
		answer, err := c.Do(t.Context(), m)
		if r.Answer.Kind == "error" {
			want := int(r.Answer.Data.(map[string]any)["code"].(float64))
			if got := client.Answered(err); got == nil || got.Code() != want {
				t.Errorf("%s: got %s, %v, want error %d", m.Data, answer.Data, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", m.Type, m.Data, err)
			continue
		}
		var got any
		testkit.Must(t, json.Unmarshal(answer.Data, &got))
		if diff := cmp.Diff(r.Answer.Data, alike(r.Answer.Data, got)); diff != "" {
			t.Errorf("%s %s: (-then +now)\n%s", m.Type, m.Data, diff)
		}
	}
}

// alike returns got without the members that want does not have.
func alike(want, got any) any {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return got
		}
		same := make(map[string]any)
		for name, value := range w {
			if has, ok := g[name]; ok {
				same[name] = alike(value, has)
			}
		}
		return same
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return got
		}
		same := make([]any, len(g))
		for i := range g {
			same[i] = alike(w[i], g[i])
		}
		return same
	}
	return got
}

// into makes a call and decodes its reply.
func into(t testing.TB, c *client.Client, kind schema.Kind, typ, data string, out any) {
	t.Helper()
	answer, err := c.Call(t.Context(), kind, typ, []byte(data))
	testkit.Must(t, err)
	testkit.Must(t, json.Unmarshal(answer.Data, out))
}
