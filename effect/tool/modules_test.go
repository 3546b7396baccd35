package tool_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/tool"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// memory is the memory limit of modules in the tests, in bytes: 100 pages.
const memory = 100 * 64 << 10

// tools returns a caller with a new root that has the given files. A file that begins with "#!" is executable.
func tools(t *testing.T, files map[string][]byte) *tool.Caller {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		mode := os.FileMode(0o600)
		if bytes.HasPrefix(text, []byte("#!")) {
			mode = 0o700
		}
		testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, text, mode)))
	}
	space, err := uri.New(root)
	testkit.Must(t, err)
	tree, err := rootfs.Open(space)
	testkit.Must(t, err)
	modules, err := tool.NewModules(memory, 4)
	testkit.Must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(modules.Close(), tree.Close()); err != nil {
			t.Error(err)
		}
	})
	return &tool.Caller{Space: space, Files: tree, Modules: modules, Limits: tool.Limits{Time: time.Minute}}
}

func request(path, input string) tool.Request {
	return tool.Request{Path: path, Input: []byte(input), PID: 7, AgentID: "agent"}
}

// TestModule checks that a module gets the input, and that the result has its output on one line and its digest.
func TestModule(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{"tools/echo": echo()})
	for input, want := range map[string]string{
		`[1, 2.50]`:                              `[1,2.50]`,
		"{ \"a b\" :\t\"c\\\" d\" }\n":           `{"a b":"c\" d"}`,
		`"` + strings.Repeat("x ", 50_000) + `"`: `"` + strings.Repeat("x ", 50_000) + `"`,
	} {
		r, err := c.Call(t.Context(), request("os/tools/echo", input))
		testkit.Must(t, err)
		if string(r.Output) != want || r.URI != "os:///tools/echo" || r.Kind != tool.Module || r.Digest != rootfs.Digest(echo()) {
			t.Errorf("%.40q: %.40q, %s, %s, %s", input, r.Output, r.URI, r.Kind, r.Digest)
		}
	}
	// The same file by a name relative to an identity.
	q := request("./echo", `1`)
	q.Base = "os:///tools/agent.md"
	if r, err := c.Call(t.Context(), q); err != nil || string(r.Output) != `1` {
		t.Errorf("%v, %v", r, err)
	}
}

// TestModuleIsStopped checks that any module ends within its limits, with the reason.
func TestModuleIsStopped(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{
		"spin": spin(), "recurse": recurse(), "flood": flood(1), "noise": flood(2), "wait": wait(),
		"silent": module(1, nil), "prose": printing("no JSON"), "two": printing("1 2"), "trap": module(1, nil, []byte{0x00}),
		"exit": module(1, nil, constant(3), call(procExit)), "zero": module(1, nil, constant(0), call(procExit)),
	})
	short := *c
	short.Limits.Time = 300 * time.Millisecond
	for name, x := range map[string]struct {
		caller *tool.Caller
		want   error
		says   string
	}{
		"spin":    {&short, fault.ToolTimeout, "300ms"},
		"wait":    {&short, fault.ToolTimeout, "300ms"},
		"noise":   {&short, fault.ToolTimeout, "300ms"},
		"recurse": {c, fault.ToolFailed, "stack overflow"},
		"flood":   {c, fault.ToolLimit, "1048576"},
		"silent":  {c, fault.ToolBadOutput, ""},
		"zero":    {c, fault.ToolBadOutput, ""},
		"prose":   {c, fault.ToolBadOutput, ""},
		"two":     {c, fault.ToolBadOutput, ""},
		"trap":    {c, fault.ToolFailed, "unreachable"},
		"exit":    {c, fault.ToolFailed, "exit code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := x.caller.Call(t.Context(), request(name, "{}"))
			if r == nil || !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.says) || r.Digest == "" || r.URI != "os:///"+name {
				t.Fatalf("%v, %v, want %v that says %q", r, err, x.want, x.says)
			}
			if len(r.Said) > 4<<10 || (r.Said == "") == (name == "noise") {
				t.Errorf("the error output has %d bytes", len(r.Said))
			}
		})
	}
}

// TestModuleIsCancelled checks that a call can be canceled at any time, and that its error is the cause.
func TestModuleIsCancelled(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{"spin": spin(), "wait": wait(), "flood": flood(2)})
	gone := errors.New("the caller has gone")
	for _, name := range []string{"spin", "wait", "flood"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
			if r, err := c.Call(ctx, request(name, "{}")); !errors.Is(err, gone) {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// TestModuleMemory checks that the memory limit of a module is exact to the page.
func TestModuleMemory(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{"grow": grow(), "born": module(101, nil)})
	if _, err := c.Call(t.Context(), request("grow", "{}")); !errors.Is(err, fault.ToolFailed) || !strings.HasSuffix(err.Error(), "exit code 100") {
		t.Errorf("a module that grows to the limit of 100 pages: %v", err)
	}
	if _, err := c.Call(t.Context(), request("born", "{}")); !errors.Is(err, fault.ToolBadModule) {
		t.Errorf("a module that starts with 101 pages: %v", err)
	}
}

// TestModuleChance checks that the random numbers of a module are the same for the same call, and differ for different calls.
func TestModuleChance(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{"chance": chance(), "calendar": calendar()})
	seen := make(map[string]bool)
	for _, input := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		_, first := c.Call(t.Context(), request("chance", input))
		_, again := c.Call(t.Context(), request("chance", input))
		if first == nil || again == nil || first.Error() != again.Error() {
			t.Errorf("input %s: %v, then %v", input, first, again)
			continue
		}
		seen[first.Error()] = true
	}
	if len(seen) < 3 {
		t.Errorf("eight inputs gave %v", seen)
	}
	if _, err := c.Call(t.Context(), request("calendar", "1")); !errors.Is(err, fault.ToolBadOutput) {
		t.Errorf("the wall clock is not 0: %v", err)
	}
}

// TestModuleRefused checks that a file that is not a valid module is refused before it runs.
func TestModuleRefused(t *testing.T) {
	t.Parallel()
	funcref := byte(0x70)
	c := tools(t, map[string][]byte{
		"cut":     echo()[:40],
		"garbage": append(echo()[:8], 1, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"version": append([]byte("\x00asm\x02\x00\x00\x00"), echo()[8:]...),
		"reactor": append([]byte("\x00asm\x01\x00\x00\x00"), section(5, []byte{1, 0, 1})...),
		"foreign": join([]byte("\x00asm\x01\x00\x00\x00"), section(1, vector([]byte{0x60, 0, 0})), section(2, vector(join(text("env"), text("open"), []byte{0, 0}))),
			section(3, vector([]byte{0})), section(7, vector(join(text("_start"), []byte{0, 1}))), section(10, vector([]byte{2, 0, 0x0b}))),
		"table":     assemble(1, nil, vector(join([]byte{funcref, 0}, leb(1<<20+1)))),
		"tables":    assemble(1, nil, vector(join([]byte{funcref, 0}, leb(1<<20)), join([]byte{funcref, 1}, leb(1), leb(2)))),
		"growing":   assemble(1, nil, vector([]byte{funcref, 0, 1}), []byte{0xd0, funcref}, constant(1), []byte{0xfc, 15, 0}, drop),
		"types":     join(echo()[:8], section(1, leb(0xffffffff))),
		"globals":   join(echo()[:8], section(6, join(leb(90_000), make([]byte, 100)))),
		"elements":  join(echo()[:8], section(9, join([]byte{1, 1, 0}, leb(0xfffffff0)))),
		"data":      join(echo()[:8], section(11, join([]byte{1, 1}, leb(0xfffffff0)))),
		"params":    join(echo()[:8], section(1, join([]byte{1, 0x60}, leb(0xfffffff0)))),
		"locals":    join(echo()[:8], section(10, vector(join(leb(7), []byte{1}, leb(0xffffffff), []byte{0x7f})))),
		"many":      join(echo()[:8], section(3, join(leb(100_001), make([]byte, 100_001)))),
		"tags":      join(echo()[:8], section(13, []byte{0})),
		"memories":  join(echo()[:8], section(2, vector(join(text("env"), text("memory"), []byte{2, 0, 1})))),
		"oddtable":  assemble(1, nil, vector([]byte{funcref, 0, 1, 9})),
		"custom":    join(echo(), section(0, join(text("name"), []byte{1}, leb(5), leb(0xffffffff)))),
		"text.md":   []byte("text"),
		"empty":     nil,
		"script":    []byte("#!/bin/sh\n"),
		"fit/table": assemble(1, nil, vector([]byte{funcref, 0, 100})),
	})
	for name, want := range map[string]error{
		"cut": fault.ToolBadModule, "garbage": fault.ToolBadModule, "version": fault.ToolBadModule, "reactor": fault.ToolBadModule,
		"foreign": fault.ToolBadModule, "table": fault.ToolBadModule, "tables": fault.ToolBadModule, "growing": fault.ToolBadModule, "oddtable": fault.ToolBadModule,
		"types": fault.ToolBadModule, "globals": fault.ToolBadModule, "elements": fault.ToolBadModule, "data": fault.ToolBadModule, "params": fault.ToolBadModule,
		"locals": fault.ToolBadModule, "many": fault.ToolBadModule, "tags": fault.ToolBadModule, "memories": fault.ToolBadModule,
		"text.md": fault.ToolNotCallable, "empty": fault.ToolNotCallable, "script": fault.ToolNoPrograms,
		"missing": fault.FileNotFound, "fit": fault.FileNotRegular, "../x": fault.NameInvalid, "https://h.example/x": fault.FileNotLocal,
		"fit/table": fault.ToolBadOutput,
	} {
		if r, err := c.Call(t.Context(), request(name, "{}")); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v, want %v", name, r, err, want)
		}
	}
	if r, err := c.Call(t.Context(), request("custom", "1")); err != nil || string(r.Output) != "1" {
		t.Errorf("a custom section with too many names, which is not read: %v, %v", r, err)
	}
	if _, err := c.Call(t.Context(), request("cut", "{} {}")); !errors.Is(err, fault.ToolInvalid) {
		t.Errorf("input that is no JSON: %v", err)
	}
	c.Limits.ToolBytes = 100
	if _, err := c.Call(t.Context(), request("growing", "{}")); !errors.Is(err, fault.FileTooLarge) {
		t.Errorf("a tool of more than 100 bytes: %v", err)
	}
	for _, bad := range [][2]int64{{0, 1}, {1 << 40, 1}, {1 << 20, 0}} {
		if _, err := tool.NewModules(bad[0], int(bad[1])); err == nil {
			t.Errorf("an engine of %d bytes and %d modules started", bad[0], bad[1])
		}
	}
}

// TestModuleCache checks that compiled modules are cached by digest up to the limit, and that a module that is evicted while it runs
// continues.
func TestModuleCache(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"echo": echo(), "same": echo()}
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, name := range names {
		files[name] = printing(`"` + name + `"`)
	}
	c := tools(t, files)
	for range 3 {
		for _, name := range []string{"echo", "same"} {
			if r, err := c.Call(t.Context(), request(name, `1`)); err != nil || string(r.Output) != "1" {
				t.Fatalf("%v, %v", r, err)
			}
		}
	}
	if n := c.Modules.Cached(); n != 1 {
		t.Errorf("%d modules are kept of one", n)
	}
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for j := range 40 {
				name := names[(i*3+j)%len(names)]
				if r, err := c.Call(t.Context(), request(name, `1`)); err != nil || string(r.Output) != `"`+name+`"` {
					t.Errorf("%s: %v, %v", name, r, err)
				}
			}
		})
	}
	callers.Wait()
	if n := c.Modules.Cached(); n != 4 {
		t.Errorf("%d modules are kept, want 4", n)
	}
}

// TestOthersAreServed checks that calls of a module succeed while other modules loop forever.
func TestOthersAreServed(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{"spin": spin(), "echo": echo()})
	ctx, cancel := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	for range 4 {
		loops.Go(func() {
			if r, err := c.Call(ctx, request("spin", "1")); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
	for range 200 {
		if r, err := c.Call(t.Context(), request("echo", "1")); err != nil || string(r.Output) != "1" {
			t.Errorf("%v, %v", r, err)
		}
	}
	cancel()
	loops.Wait()
}
