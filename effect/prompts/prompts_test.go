package prompts_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/prompts"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// kept returns where the text of a prompt is.
func kept(k *prompts.Keeper, text string) string {
	return filepath.Join(k.Dir, fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
}

// TestPrompts: a session works on the prompt that was submitted last, its text is kept without secrets until it is old, and what is no
// digest names no file.
func TestPrompts(t *testing.T) {
	t.Parallel()
	k := &prompts.Keeper{Dir: filepath.Join(t.TempDir(), "prompts"), Of: func(pid int64) string { return "a" + strconv.FormatInt(pid, 10) }}
	seq := uint64(0)
	submit := func(pid int64, session, text string) schema.PromptSubmitOutput {
		t.Helper()
		seq++
		return testkit.Value(k.Submit(t.Context(), &kernel.Job{PID: pid, Seq: seq}, &schema.PromptSubmitInput{Host: "h", Session: session, Text: text}))(t)
	}
	testkit.Must(t, k.Forget(time.Now())) // nothing is kept yet
	first := submit(1, "s", "one PASSWORD=hunter2secret")
	second := submit(1, "s", "two")
	other := submit(2, "s", "three")
	if first.Agent != "a1" || first.Digest == second.Digest || submit(1, "t", "two").Digest != second.Digest {
		t.Errorf("%+v, %+v", first, second)
	}
	for _, tt := range []struct {
		pid           int64
		host, session string
		want          *schema.StepPrompt
	}{
		{1, "h", "s", &schema.StepPrompt{Entry: 2, Digest: second.Digest}},
		{1, "h", "s/subagent", &schema.StepPrompt{Entry: 2, Digest: second.Digest}},
		{2, "h", "s", &schema.StepPrompt{Entry: 3, Digest: other.Digest}},
		{1, "i", "s", nil},
		{3, "h", "s", nil},
		{1, "h", "", nil},
	} {
		if got := k.Latest(tt.pid, tt.host, tt.session); (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%d %s %s: %+v, want %+v", tt.pid, tt.host, tt.session, got, tt.want)
		}
	}
	text := func(digest string) string {
		t.Helper()
		return testkit.Value(k.Text(digest))(t)
	}
	if got := text(first.Digest); got != "one PASSWORD=[redacted]" {
		t.Errorf("kept: %q", got)
	}
	for _, digest := range []string{"", "sha256-", "../../etc/passwd", "sha256-Li4vLi4vZXRjL3Bhc3N3ZA==", first.Digest + "x"} {
		if got := text(digest); got != "" {
			t.Errorf("%q: %q", digest, got)
		}
	}
	for n := range 1000 { // sessions without end take no memory without end
		submit(4, strconv.Itoa(n), "x")
	}
	if k.Latest(4, "h", "999") == nil || k.Latest(4, "h", "0") != nil {
		t.Error("the first sessions of many are remembered, or the last is not")
	}
	k.Ended(1)
	if k.Latest(1, "h", "s") != nil {
		t.Error("an agent that has ended has a prompt")
	}
	testkit.Must(t, k.Forget(time.Now().Add(-time.Hour)))
	if text(second.Digest) != "two" {
		t.Error("a new text was forgotten")
	}
	testkit.Must(t, k.Forget(time.Now().Add(time.Hour)))
	if text(second.Digest) != "" {
		t.Error("an old text was not forgotten")
	}
	submit(1, "s", "first line\nvalue, and value")
	testkit.Must(t, os.Chtimes(kept(k, "first line\nvalue, and value"), time.Time{}, time.UnixMilli(1000)))
	if n := testkit.Value(prompts.Redact(k.Dir, []byte("value")))(t); n != 1 {
		t.Errorf("%d texts had the value", n)
	}
	path := kept(k, "first line\nvalue, and value")
	if got := testkit.ReadFile(t, path); got != "first line\n[redacted], and [redacted]" || testkit.Value(os.Stat(path))(t).ModTime().UnixMilli() != 1000 {
		t.Errorf("redacted: %q", got)
	}
	last := submit(1, "s", "to go")
	for _, want := range []bool{true, false} {
		if got := testkit.Value(prompts.Remove(k.Dir, last.Digest))(t); got != want || text(last.Digest) != "" {
			t.Errorf("removed: %v, want %v", got, want)
		}
	}
	if got := testkit.Value(prompts.Remove(k.Dir, "../key"))(t); got {
		t.Error("what is no digest was removed")
	}
	k.Off = true
	if off := submit(1, "s", "secret plans"); text(off.Digest) != "" || k.Latest(1, "h", "s").Digest != off.Digest {
		t.Error("a text is kept although that is off, or its digest is not")
	}
}
