package process_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema/fault"
)

// end makes the command that ends what a call had done outside, with the given result of its runner.
func (s *shell) end(pid int64, typ, outcome, result string) (string, *fault.Fault) {
	s.t.Helper()
	return s.run(kernel.Operator, outcome, fmt.Sprintf(`{"intent":1,"type":%q,"pid":%d,"ran":true,"outcome":%s}`, typ, pid, result))
}

// adoption is a runner's result of an ingest.
func adoption(id, uri, front, content string) string {
	return fmt.Sprintf(`{"kind":"reply","data":{"identity":{"context_id":%q,"uri":%q,"digest":"sha256-x","proof":"local"},"front_matter":%q,"content":%q}}`,
		id, uri, front, content)
}

func (s *shell) adopt(pid int64, id, uri, content string) {
	s.t.Helper()
	if _, err := s.end(pid, "Kernel.Ingest", "Process.Adopted", adoption(id, uri, `{"tools":["a/b"]}`, content)); err != nil {
		s.t.Fatal(err)
	}
}

// begun is the effect that the last call asked for.
func begun[T any](s *shell) *T {
	s.t.Helper()
	do, ok := s.effect.Run.(*T)
	if !ok {
		s.t.Fatalf("the last call asked for the effect %T", s.effect.Run)
	}
	return do
}

// TestAdopt: only the outcome switches the identity, which is then the base of the process's names; a replay and a
// snapshot give the same.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.spawn(kernel.Operator)
	for _, who := range []int64{pid, kernel.Operator} {
		if _, err := s.run(who, "Kernel.Ingest", `{"uri":"./a","integrity":"sha256-x"}`); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&process.Ingest{URI: "./a", Integrity: "sha256-x"}, begun[process.Ingest](s)); diff != "" {
			t.Error(diff)
		}
		if s.domain.Processes().Adopted(who, home) != nil {
			t.Error("the intent alone has adopted the resource")
		}
		out, err := s.end(who, "Kernel.Ingest", "Process.Adopted", adoption("ctx-1", "os:///d/a", "{}", "text"))
		want := `{"context_id":"ctx-1","phases":["fetch","validate","load","adopt"],"uri":"os:///d/a","digest":"sha256-x","proof":"local","content":"text"}`
		if err != nil || out != want {
			t.Errorf("%s, %v", out, err)
		}
		if is := s.domain.Processes().Adopted(who, home); is == nil || is.URI != "os:///d/a" || is.ContextID != "ctx-1" {
			t.Errorf("pid %d is %+v", who, is)
		}
		s.check()
		if _, err := s.run(who, "Kernel.Ingest", `{"uri":"./b"}`); err != nil || begun[process.Ingest](s).Base != "os:///d/a" {
			t.Errorf("%v, %+v", err, s.effect.Run)
		}
	}
	if is := s.get(pid).Identity; is == nil || is.Digest != "sha256-x" {
		t.Errorf("the descriptor has %+v", is)
	}
	if child := s.spawn(pid); s.get(child).Identity != nil {
		t.Error("a child starts with its parent's identity")
	}
	if s.domain.Processes().Adopted(kernel.Operator, "https://other.local/") != nil || s.domain.Processes().Adopted(99, home) != nil {
		t.Error("another process, or another identity, has the adopted content")
	}
}

// TestAdoptFails: a failure outside the kernel, or the end of the process, changes nothing.
func TestAdoptFails(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.spawn(kernel.Operator)
	s.adopt(pid, "ctx-1", "os:///a", "text")
	before := string(domaintest.Snapshot(t, s.domain))
	refused := func(pid int64, result string, class fault.Kind) {
		t.Helper()
		if _, err := s.end(pid, "Kernel.Ingest", "Process.Adopted", result); err == nil || err.Kind != class {
			t.Errorf("got %v", err)
		}
		if string(domaintest.Snapshot(t, s.domain)) != before {
			t.Error("the state has changed")
		}
	}
	refused(pid, `{"kind":"error","data":{"code":403,"message":"fetch: closed"}}`, fault.Forbidden)
	refused(pid, adoption("ctx-2", "os:///b", "{}", strings.Repeat("x", process.MaxContexts)), fault.Insufficient)
	refused(99, adoption("ctx-2", "os:///b", "{}", "x"), fault.Conflict)
	if _, err := s.run(kernel.Operator, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid)); err != nil {
		t.Fatal(err)
	}
	before = string(domaintest.Snapshot(t, s.domain))
	refused(pid, adoption("ctx-2", "os:///b", "{}", "x"), fault.Ended)
	for _, typ := range []string{"Kernel.Ingest", "FileSystem.Hydrate"} {
		if _, err := s.run(pid, typ, `{"uri":"a"}`); err == nil || err.Kind != fault.Ended {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// TestContextsAreLetGo: an adopted content is kept once for all processes that have adopted it, and released when the last one ends.
func TestContextsAreLetGo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	a, b := s.spawn(kernel.Operator), s.spawn(kernel.Operator)
	kept := func(id string) int { return strings.Count(string(domaintest.Snapshot(t, s.domain)), `"id":"`+id+`"`) }
	s.adopt(a, "ctx-1", "os:///1", "text")
	s.adopt(b, "ctx-1", "os:///1", "text")
	s.adopt(b, "ctx-1", "os:///1", "text") // the same again
	if n := kept("ctx-1"); n != 1 {
		t.Errorf("the content is kept %d times, want once", n)
	}
	s.adopt(a, "ctx-2", "os:///2", "text")
	s.check()
	if kept("ctx-1") != 1 || kept("ctx-2") != 1 {
		t.Error("a content that a process has adopted is not kept")
	}
	for _, pid := range []int64{a, b} {
		if _, err := s.run(kernel.Operator, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid)); err != nil {
			t.Fatal(err)
		}
	}
	s.check()
	if kept("ctx-1") != 0 || kept("ctx-2") != 0 {
		t.Error("a content that no living process has adopted is kept")
	}
	if s.get(a).Identity == nil {
		t.Error("the identity of an ended process is forgotten")
	}
}

// TestHydrate: an adopted resource is hydrated as it was adopted, a named one as it is now.
func TestHydrate(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.spawn(kernel.Operator)
	if _, err := s.run(pid, "FileSystem.Hydrate", `{}`); err == nil || err.Field != "uri" {
		t.Errorf("without an identity: %v", err)
	}
	s.adopt(pid, "ctx-1", "os:///d/1", "text")
	for data, want := range map[string]process.Hydrate{
		`{}`:            {URI: "os:///d/1", FrontMatter: `{"tools":["a/b"]}`},
		`{"uri":"./2"}`: {URI: "./2", Base: "os:///d/1"},
	} {
		if _, err := s.run(pid, "FileSystem.Hydrate", data); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, begun[process.Hydrate](s)); diff != "" {
			t.Errorf("%s: %s", data, diff)
		}
	}
	if out, err := s.end(pid, "FileSystem.Hydrate", "FileSystem.Hydrated", `{"kind":"reply","data":{"skills":[]}}`); err != nil || out != `{"skills":[]}` {
		t.Errorf("%s, %v", out, err)
	}
}

// TestTool: arguments keep their order, and the caller gets the tool's answer, or the error, without the record of
// the call.
func TestTool(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.spawn(kernel.Operator)
	s.adopt(pid, "ctx-1", "os:///d/1", "text")
	for args, want := range map[string]string{
		``: `null`, `,"args":[]`: `null`, `,"args":[{"a": 1.0}]`: `{"a": 1.0}`, `,"args":[1,"b",[]]`: `[1,"b",[]]`, `,"args":[[1]]`: `[1]`,
	} {
		if _, err := s.run(pid, "Syscall.Call", `{"syscall":"./t"`+args+`}`); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&process.Tool{Path: "./t", Base: "os:///d/1", Input: []byte(want), AgentID: "a1"}, begun[process.Tool](s)); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
	}
	record := func(outcome string) string {
		return `{"kind":"reply","data":{"uri":"os:///d/t","digest":"sha256-x","outcome":` + outcome + `}}`
	}
	if out, err := s.end(pid, "Syscall.Call", "Syscall.Called", record(`{"kind":"reply","data":[1]}`)); err != nil || out != `[1]` {
		t.Errorf("%s, %v", out, err)
	}
	_, err := s.end(pid, "Syscall.Call", "Syscall.Called", record(`{"kind":"error","data":{"code":504,"message":"the time is over"}}`))
	if err == nil || err.Kind != fault.Timeout || err.Text() != "the time is over" {
		t.Errorf("%v", err)
	}
}
