package agents_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/effect/tool"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// example copies examples/promptware and builds its module there, as its README says.
func example(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	source, err := filepath.Abs("../../examples/promptware")
	testkit.Must(t, err)
	testkit.Must(t, os.CopyFS(root, os.DirFS(source)))
	build := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join(root, "src/wordcount"), "-o", "../../tools/wordcount", ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return root
}

// TestExample does what a kernel does at boot.
func TestExample(t *testing.T) {
	t.Parallel()
	space, err := uri.New(example(t))
	testkit.Must(t, err)
	tree, err := rootfs.Open(space)
	testkit.Must(t, err)
	defer func() { _ = tree.Close() }()
	p := &ingest.Pipeline{Space: space, Files: tree}
	now := time.Now()

	boot, err := p.Run(t.Context(), ingest.Request{URI: "BOOT.md", Now: now})
	testkit.Must(t, err)
	if !strings.Contains(string(boot.FrontMatter), `"origin":"promptware-example","init":"agents/editor.md"`) {
		t.Errorf("%s", boot.FrontMatter)
	}
	if origin, err := uri.Origin("promptware-example", "/"); err != nil || origin != "https://promptware-example.local/" {
		t.Errorf("%s, %v", origin, err)
	}
	editor, err := p.Run(t.Context(), ingest.Request{URI: "./agents/editor.md", Base: boot.Identity.URI, Now: now})
	testkit.Must(t, err)
	reviewer, err := p.Run(t.Context(), ingest.Request{URI: "./reviewer.md", Base: editor.Identity.URI, Now: now})
	testkit.Must(t, err)
	hydrated(t, p, editor, "skill os:///skills/plan.md plan", "skill os:///skills/summarise.md shorten",
		"tool os:///tools/wordcount wordcount", "tool os:///tools/today today")
	hydrated(t, p, reviewer, "tool os:///tools/wordcount wordcount")

	modules, err := tool.NewModules(64<<20, 4)
	testkit.Must(t, err)
	defer func() { _ = modules.Close() }()
	c := &tool.Caller{Space: space, Files: tree, Modules: modules, Limits: tool.Limits{Time: time.Minute, CompileTime: 2 * time.Minute}}
	words(t, c, editor.Identity.URI)
	today(t, c)
}

// hydrated fails the test unless an agent lists exactly these, each with a description and a digest.
func hydrated(t *testing.T, p *ingest.Pipeline, l *ingest.Loaded, want ...string) {
	t.Helper()
	out, err := p.Hydrate(t.Context(), l, time.Now())
	if err != nil || len(out.Skills)+len(out.Tools) != len(want) {
		t.Fatalf("%s: %v, %v", l.URI, out, err)
	}
	for i, item := range slices.Concat(out.Skills, out.Tools) {
		kind := "tool"
		if i < len(out.Skills) {
			kind = "skill"
		}
		if got := kind + " " + item.URI + " " + item.Name; got != want[i] || !strings.HasPrefix(item.Digest, "sha256-") {
			t.Errorf("%s: %s, %s, want %s", l.URI, got, item.Digest, want[i])
		}
		// The program describes itself on request, and hydrating starts nothing.
		if (item.Description == "") != (item.Name == "today") {
			t.Errorf("%s is described as %q", item.URI, item.Description)
		}
	}
}

// words calls the module, compiled from a large language, by the name that the editor uses.
func words(t *testing.T, c *tool.Caller, base string) {
	t.Helper()
	call := tool.Request{Path: "../tools/wordcount", Base: base, Input: []byte(`"one two\nthree"`)}
	r, err := c.Call(t.Context(), call)
	if err != nil || string(r.Output) != `{"words":3}` || r.Kind != tool.Module {
		t.Errorf("%+v, %v", r, err)
	}
	d, err := c.Describe(t.Context(), call)
	if err != nil || d.Manifest.Name != "wordcount" || len(d.Manifest.Output) == 0 || d.Digest != r.Digest {
		t.Errorf("%+v, %v", d, err)
	}
	call.Input = []byte(`{"text":1}`)
	r, err = c.Call(t.Context(), call)
	if err == nil || r == nil || !strings.HasPrefix(r.Said, "read input:") {
		t.Errorf("input of the wrong type: %+v, %v", r, err)
	}
}

// today calls the program.
func today(t *testing.T, c *tool.Caller) {
	t.Helper()
	call := tool.Request{Path: "os/tools/today", Input: []byte(`{}`), AgentID: "editor", PID: 1}
	if _, err := c.Call(t.Context(), call); !errors.Is(err, fault.ToolNoPrograms) {
		t.Errorf("without a host: %v", err)
	}
	h, err := host.New(host.Options{})
	if errors.Is(err, host.ErrUnsupported) {
		t.Log(err)
		return
	} else if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background(), 0)
	c.Programs = &tool.Programs{Host: h, Scratch: t.TempDir()}
	r, err := c.Call(t.Context(), call)
	if err != nil || !regexp.MustCompile(`^\{"date":"20\d\d-\d\d-\d\d"\}$`).Match(r.Output) || r.Kind != tool.Program {
		t.Errorf("%+v, %v", r, err)
	}
	d, err := c.Describe(t.Context(), call)
	if err != nil || d.Manifest.Name != "today" || d.Digest != r.Digest {
		t.Errorf("%+v, %v", d, err)
	}
}
