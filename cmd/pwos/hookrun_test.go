package main_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

const (
	hello = `{"kind":"command","type":"Syscall.Authenticate","data":{"scheme":"none"},"metadata":{"id":"a","timestamp":0}}` + "\n"
	bash  = `{"session_id":"s","tool_name":"Bash","tool_input":{},"tool_use_id":"u"}`
)

// runHook runs the hook with a question, at the server of a socket in dir.
func runHook(t *testing.T, dir, question string, patience time.Duration, args ...string) (status int, said string) {
	t.Helper()
	file := filepath.Join(dir, "question")
	testkit.WriteFile(t, file, question)
	stdin, err := os.Open(file)
	testkit.Must(t, err)
	defer func() { _ = stdin.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	status, said, err = pwos.RunHook(ctx, stdin, dir, args...)
	testkit.Must(t, err)
	return status, said
}

func listen(t *testing.T, dir string) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(dir, "kernel.sock"))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// TestHookOfNoKernel checks that, if the server at the socket is not a kernel, a tool is denied, and a step that ends denies nothing.
func TestHookOfNoKernel(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"nothing": "", "garbage": "garbage\n", "half": `{"kind":`, "an answer that is none": hello + "garbage\n",
		"another's answer": hello + `{"kind":"reply","type":"Syscall.Ping","data":{"decision":"allow","reason":""},"metadata":{"id":"b","timestamp":0,"causation":"c"}}` + "\n",
		"an error":         hello + `{"kind":"error","type":"Syscall.Ping","data":{"code":503,"message":"no"},"metadata":{"id":"b","timestamp":0}}` + "\n",
	} {
		for _, hangsUp := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := testkit.Dir(t)
				go serveNonsense(listen(t, dir), says, hangsUp)
				if status, said := runHook(t, dir, bash, 300*time.Millisecond); status != 2 || !strings.Contains(said, "denied") {
					t.Errorf("a tool: %d, %q", status, said)
				}
				after := strings.Replace(bash, "{", `{"hook_event_name":"PostToolUse",`, 1)
				if status, said := runHook(t, dir, after, 300*time.Millisecond, "--tell"); status != 0 || !strings.Contains(said, "a step does not end: ") {
					t.Errorf("after a tool: %d, %q", status, said)
				}
			})
		}
	}
}

// TestHookSteps checks which calls a hook makes for each event, and that a kernel without steps, and one where they fail, deny nothing.
func TestHookSteps(t *testing.T) {
	t.Parallel()
	const (
		ping    = `"data":{"payload":null}`
		allow   = `"data":{"decision":"allow","reason":"it is granted"}`
		begun   = `"data":{"agent":"claude","step":0}`
		ended   = `"data":{"agent":"claude","step":0,"files":0}`
		unknown = `"data":{"code":404,"message":"no such syscall"},"error":"wire.unknown_syscall"`
		failed  = `"data":{"code":500,"message":"it failed"},"error":"kernel.internal"`
		none    = "" // the kernel does not answer
	)
	event := func(name string) string { return strings.Replace(bash, "{", `{"hook_event_name":"`+name+`",`, 1) }
	for name, tc := range map[string]struct {
		question string
		answers  map[string]string
		status   int
		calls    []string
		says     string // "": nothing
	}{
		"a tool":                          {bash, map[string]string{"Host.ToolUse": allow, "Step.Begin": begun}, 0, []string{"Host.ToolUse", "Step.Begin"}, ""},
		"a denied tool":                   {bash, map[string]string{"Host.ToolUse": `"data":{"decision":"deny","reason":"no"}`, "Step.Begin": begun}, 2, []string{"Host.ToolUse"}, "pwos: no\n"},
		"of a kernel without steps":       {bash, map[string]string{"Host.ToolUse": allow, "Step.Begin": unknown}, 0, []string{"Host.ToolUse", "Step.Begin"}, ""},
		"a step that fails":               {bash, map[string]string{"Host.ToolUse": allow, "Step.Begin": failed}, 0, []string{"Host.ToolUse", "Step.Begin"}, "Tool:claude/Bash is allowed, and what it changes is not kept as a step: it failed"},
		"a step without an answer":        {bash, map[string]string{"Host.ToolUse": allow, "Step.Begin": none}, 0, []string{"Host.ToolUse", "Step.Begin"}, "not kept as a step"},
		"after a tool":                    {event("PostToolUse"), map[string]string{"Step.End": ended}, 0, []string{"Step.End"}, ""},
		"after a tool, without steps":     {event("PostToolUse"), map[string]string{"Step.End": unknown}, 0, []string{"Step.End"}, ""},
		"after a tool, without a grant":   {event("PostToolUse"), map[string]string{"Step.End": `"data":{"code":403,"message":"no"},"error":"capability.denied"`}, 0, []string{"Step.End"}, ""},
		"an end that fails":               {event("PostToolUseFailure"), map[string]string{"Step.End": failed}, 0, []string{"Step.End"}, "a step does not end: it failed"},
		"an end without an answer":        {event("PostToolUse"), map[string]string{"Step.End": none}, 0, []string{"Step.End"}, "a step does not end: "},
		"a prompt":                        {event("UserPromptSubmit"), map[string]string{"Step.End": ended}, 0, []string{"Step.End"}, ""},
		"what the user asks for":          {`{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"go"}`, map[string]string{"Step.End": ended, "Prompt.Submit": `"data":{"agent":"claude","digest":"d"}`}, 0, []string{"Step.End", "Prompt.Submit"}, ""},
		"an event that nobody knows":      {event("TeammateIdle"), nil, 0, nil, ""},
		"an invalid question of a tool":   {`{"session_id":"s"`, nil, 2, nil, "so the tool is denied"},
		"an invalid name of an event":     {`{"hook_event_name":7}`, nil, 2, nil, "so the tool is denied"},
		"an event without what it must":   {`{"hook_event_name":"PostToolUse"}`, nil, 0, nil, "the host's question is invalid: session_id is missing"},
		"--tell an invalid question":      {`{"hook_event_name":"UserPromptSubmit","prompt":"\ud800"}`, nil, 0, nil, "the host's question is invalid"},
		"--tell an event without a tool":  {`{"hook_event_name":"PostToolUse","session_id":"s"}`, nil, 0, nil, "the host's question is invalid: tool_name is missing"},
		"--tell a tool that is not known": {event("PreToolUse"), map[string]string{"Host.ToolUse": `"data":{"decision":"deny","reason":"no"}`}, 2, []string{"Host.ToolUse"}, "pwos: no\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			k := &fakeKernel{answers: map[string]string{"Syscall.Ping": ping}}
			maps.Copy(k.answers, tc.answers)
			go k.serve(listen(t, dir))
			var args []string
			if strings.HasPrefix(name, "--tell") {
				args = []string{"--tell"}
			}
			patience := 30 * time.Second
			if strings.HasSuffix(name, "without an answer") {
				patience = time.Second
			}
			status, said := runHook(t, dir, tc.question, patience, args...)
			if status != tc.status || (tc.says == "") != (said == "") || !strings.Contains(said, tc.says) {
				t.Errorf("exit status %d, stderr %q", status, said)
			}
			if got := k.called(); !slices.Equal(got, tc.calls) {
				t.Errorf("the hook calls %q, want %q", got, tc.calls)
			}
		})
	}
}

// TestHookTellsRefusals: what was refused in a tool call is told to the model, as the host reads it: the rule and its advice, and of a
// question that it was filed. Of an event that ends no use of a tool nothing is told.
func TestHookTellsRefusals(t *testing.T) {
	t.Parallel()
	const ended = `"data":{"agent":"claude","step":0,"files":0,"more":2,"refused":[` +
		`{"error":"policy.denied","program":"/p/deploy --now","why":"the rule \"no\" forbids this exec of deploy","rule":"no","fix":"ask a person"},` +
		`{"error":"approval.pending","program":"/p/push","why":"it waits","rule":"push","approval":"q-7"}]}`
	text := `pwos did not let these programs run (they failed with EACCES, in a shell exit status 126):\n` +
		`- /p/deploy --now: the rule \"no\" forbids this exec of deploy. Advice: ask a person\n` +
		`- /p/push: the rule \"push\" requires an approval. The question q-7 was filed. Go on with something else, and try exactly this again once it is answered\n` +
		`- and 2 more`
	for event, want := range map[string]string{
		"PostToolUse":        `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"` + text + "\"}}\n",
		"PostToolUseFailure": `{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"` + text + "\"}}\n",
		"PostToolBatch":      "", "UserPromptSubmit": "",
	} {
		dir := testkit.Dir(t)
		k := &fakeKernel{answers: map[string]string{"Syscall.Ping": `"data":{"payload":null}`, "Step.End": ended}}
		go k.serve(listen(t, dir))
		status, said := runHook(t, dir, strings.Replace(bash, "{", `{"hook_event_name":"`+event+`",`, 1), 30*time.Second)
		if got := string(testkit.Value(os.ReadFile(filepath.Join(dir, "stdout")))(t)); got != want || status != 0 || said != "" {
			t.Errorf("%s: exit status %d, stderr %q, stdout %s", event, status, said, got)
		}
	}
}

// fakeKernel answers calls with what it is told to.
type fakeKernel struct {
	answers map[string]string // the members of the answer to a type, without an envelope

	mu    sync.Mutex
	calls []string
}

func (k *fakeKernel) called() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

func (k *fakeKernel) serve(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go k.talk(c)
	}
}

func (k *fakeKernel) talk(c net.Conn) {
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte(hello)) // the hook may have hung up
	for lines := bufio.NewScanner(c); lines.Scan(); {
		m, failure := schema.Decode(lines.Bytes(), schema.OsMessage)
		if failure != nil || m.Type == "Syscall.Authenticate" {
			continue
		}
		if m.Type != "Syscall.Ping" {
			k.mu.Lock()
			k.calls = append(k.calls, m.Type)
			k.mu.Unlock()
		}
		answer := k.answers[m.Type]
		if answer == "" {
			continue
		}
		data, id, _ := strings.Cut(answer, `,"error":`)
		kind, meta := "reply", `"kernel":{"seq":1,"pid":1}`
		if id != "" {
			kind, meta = "error", `"error":`+id
		}
		fmt.Fprintf(c, `{"kind":%q,"type":%q,%s,"metadata":{"id":"x","timestamp":0,"causation":%q,%s}}`+"\n", kind, m.Type, data, m.Meta.ID, meta)
	}
}

// serveNonsense gives every connection the same answer.
func serveNonsense(listener net.Listener, says string, hangsUp bool) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		_, err = c.Write([]byte(says))
		if hangsUp || err != nil {
			_ = c.Close()
			continue
		}
		go func() {
			buf := make([]byte, 1024)
			for !errors.Is(err, net.ErrClosed) {
				if _, err = c.Read(buf); err != nil {
					_ = c.Close()
					return
				}
			}
		}()
	}
}
