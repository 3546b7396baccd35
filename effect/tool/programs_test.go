package tool_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/tool"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema/fault"
)

// scripts returns a caller that runs programs, with a root that has the given shell scripts.
func scripts(t *testing.T, texts map[string]string) *tool.Caller {
	t.Helper()
	files := make(map[string][]byte)
	for name, text := range texts {
		files[name] = []byte("#!/bin/sh\n" + text)
	}
	c := tools(t, files)
	h, err := host.New(host.Options{})
	if errors.Is(err, host.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background(), 0) })
	c.Programs = &tool.Programs{Host: h, Scratch: t.TempDir()}
	return c
}

// empty fails the test if calls have left files or processes.
func empty(t *testing.T, c *tool.Caller) {
	t.Helper()
	left, err := os.ReadDir(c.Programs.Scratch)
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	if running := c.Programs.Host.Processes(); len(running) > 0 {
		t.Errorf("%d programs still run", len(running))
	}
}

// TestProgram checks that a program gets the input and the PID and name of its caller, runs in its own directory, and that its output
// is the answer.
func TestProgram(t *testing.T) {
	t.Parallel()
	c := scripts(t, map[string]string{
		"tools/cat":  "cat",
		"tools/who":  `printf '{"pid":%s,"agent":"%s","args":%s}' "$PWOS_PID" "$PWOS_AGENT_ID" $#`,
		"tools/deaf": `exec <&-; echo 1`,
		"tools/mess": `mkdir -p a/b/c; touch a/b/c/d; chmod 0 a/b/c a/b a; echo 1`,
		"tools/home": `echo x > "$HOME/file" && printf '[ "%s" ]' "$(cat file)"`,
	})
	for _, x := range []struct{ name, input, want string }{
		{"tools/cat", `{ "a": 1.0 }`, `{"a":1.0}`},
		{"tools/who", `{}`, `{"pid":7,"agent":"agent","args":0}`},
		{"tools/deaf", `"` + strings.Repeat("x", 1<<20) + `"`, `1`},
		{"tools/home", `{}`, `["x"]`},
		{"tools/mess", `{}`, `1`},
	} {
		r, err := c.Call(t.Context(), request(x.name, x.input))
		if err != nil || string(r.Output) != x.want || r.Kind != tool.Program || !strings.HasPrefix(r.Digest, "sha256-") {
			t.Errorf("%s: %+v, %v", x.name, r, err)
		}
	}
	empty(t, c)
}

// TestProgramIsStopped checks that any program ends within its limits with all its processes, and that the error has the reason.
func TestProgramIsStopped(t *testing.T) {
	t.Parallel()
	c := scripts(t, map[string]string{
		"exit":    "echo oops >&2; exit 3",
		"kill":    "kill -9 $$",
		"prose":   "echo hello",
		"silent":  "",
		"flood":   "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
		"orphan":  "sleep 1000 >/dev/null & echo 1",
		"holding": "sleep 1000 & echo 1",
		"hang":    "sleep 1000",
		"closed":  "exec >&-; sleep 1000",
		"spin":    "while :; do :; done",
	})
	c.Limits.OutputBytes = 64 << 10
	short := *c
	short.Limits.Time = 500 * time.Millisecond
	for name, x := range map[string]struct {
		caller *tool.Caller
		want   error // nil: the output is 1
		said   string
	}{
		"exit":    {c, fault.ToolFailed, "oops\n"},
		"kill":    {c, fault.ToolFailed, ""},
		"prose":   {c, fault.ToolBadOutput, ""},
		"silent":  {c, fault.ToolBadOutput, ""},
		"flood":   {c, fault.ToolLimit, ""},
		"orphan":  {c, nil, ""},
		"holding": {c, nil, ""},
		"hang":    {&short, fault.ToolTimeout, ""},
		"closed":  {&short, fault.ToolTimeout, ""},
		"spin":    {&short, fault.ToolTimeout, ""},
	} {
		r, err := x.caller.Call(t.Context(), request(name, "{}"))
		if x.want == nil {
			if err != nil || string(r.Output) != "1" {
				t.Errorf("%s: %v, %v", name, r, err)
			}
			continue
		}
		if !errors.Is(err, x.want) || r == nil || r.Said != x.said || strings.Contains(err.Error(), c.Programs.Scratch) {
			t.Errorf("%s: %+v, %v, want %v", name, r, err, x.want)
		}
	}
	empty(t, c)
}

// TestProgramIsCancelled checks that a call can be canceled.
func TestProgramIsCancelled(t *testing.T) {
	t.Parallel()
	c := scripts(t, map[string]string{"hang": "sleep 1000"})
	gone := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	if r, err := c.Call(ctx, request("hang", "{}")); !errors.Is(err, gone) {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := c.Call(ctx, request("hang", "{}")); !errors.Is(err, gone) {
		t.Errorf("with a context that had ended: %v, %v", r, err)
	}
	empty(t, c)
}

// TestProgramDoesNotStart checks the error of a program that cannot be executed, which must not have the path of its copy.
func TestProgramDoesNotStart(t *testing.T) {
	t.Parallel()
	c := scripts(t, nil)
	d := tools(t, map[string][]byte{"loader": []byte("#!/no/such/interpreter\n")})
	d.Programs = c.Programs
	_, err := d.Call(t.Context(), request("loader", "{}"))
	if !errors.Is(err, fault.ToolCannotStart) || !strings.Contains(err.Error(), host.ErrInterpreter.Error()) || strings.Contains(err.Error(), c.Programs.Scratch) {
		t.Error(err)
	}
	empty(t, c)
}

// TestDescribe checks that the description is that of the manifest file, else that of the tool itself.
func TestDescribe(t *testing.T) {
	t.Parallel()
	self := `{"name":"self","description":"Says what it is.","input":{"type":"null"}}`
	c := scripts(t, map[string]string{
		"self":  `[ "$1" = --describe ] && echo '` + self + `'`,
		"other": "echo 1", "wrong": "exit 1", "broken": `echo '` + self + `'`, "beside": "exit 1",
	})
	d := tools(t, map[string][]byte{
		"module": printing(self), "sum": spin(), "sum.json": []byte(`{"description":"Adds."}`),
		"broken": printing(self), "broken.json": []byte(`{}`),
	})
	for _, x := range []struct {
		caller     *tool.Caller
		path, name string
		kind       tool.Kind
	}{{c, "self", "self", tool.Program}, {d, "module", "self", tool.Module}, {d, "sum", "sum", tool.Module}} {
		got, err := x.caller.Describe(t.Context(), request(x.path, ""))
		if err != nil || got.Manifest.Name != x.name || got.Kind != x.kind || got.URI != "os:///"+x.path || got.Digest == "" {
			t.Errorf("%s: %+v, %v", x.path, got, err)
		}
	}
	for path, caller := range map[string]*tool.Caller{"other": c, "wrong": c, "broken": d, "missing": d} {
		if got, err := caller.Describe(t.Context(), request(path, "")); err == nil || got != nil && got.Manifest != nil {
			t.Errorf("%s: %+v", path, got)
		}
	}
	empty(t, c)
}
