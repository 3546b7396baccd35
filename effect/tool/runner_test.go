package tool_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/effect/tool"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestRunner checks that the outcome of a found tool is recorded with the tool's name and digest, and that a call without a tool only
// returns an error, at the member that names the tool.
func TestRunner(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{
		"echo": echo(), "prose": printing("no JSON"), "exit": module(1, nil, constant(3), call(procExit)), "text.md": []byte("text"),
		"broken": echo(), "broken.json": []byte(`{"name":1}`),
	})
	r := tool.NewRunner(*c, 1, nil, slog.New(slog.DiscardHandler))
	only := &kernel.Token{Granted: schema.Token{PID: 7, TokenGrant: schema.TokenGrant{AllowedSyscalls: []string{"Call:echo"}}}}
	for name, x := range map[string]struct {
		do       process.Tool
		pid      int64
		recorded string   // recorded name of the tool, if it was found
		id       fault.ID // "": success
		kind     fault.Kind
		data     string
	}{
		"answers":        {do: process.Tool{Path: "echo", Input: []byte(`[1]`)}, recorded: "os:///echo", data: `[1]`},
		"granted":        {do: process.Tool{Path: "echo", Input: []byte(`[1]`)}, pid: 7, recorded: "os:///echo", data: `[1]`},
		"not granted":    {do: process.Tool{Path: "prose", Input: []byte(`1`)}, pid: 7, kind: fault.Forbidden},
		"fails":          {do: process.Tool{Path: "exit", Input: []byte(`1`)}, recorded: "os:///exit", id: fault.ToolFailed},
		"writes no JSON": {do: process.Tool{Path: "prose", Input: []byte(`1`)}, recorded: "os:///prose", id: fault.ToolBadOutput},
		"bad manifest":   {do: process.Tool{Path: "broken", Describe: true}, recorded: "os:///broken", id: fault.ToolBadManifest},
		"no tool":        {do: process.Tool{Path: "text.md", Input: []byte(`1`)}, id: fault.ToolNotCallable},
		"nothing":        {do: process.Tool{Path: "none", Input: []byte(`1`)}, id: fault.FileNotFound},
		"above root":     {do: process.Tool{Path: "../x", Input: []byte(`1`)}, id: fault.NameInvalid},
	} {
		data, err := kernel.Run(r.Call)(t.Context(), &kernel.Job{Do: &x.do, PID: x.pid, Token: only})
		if x.recorded == "" {
			if data != nil || x.id != "" && !errors.Is(err, x.id) || x.id == "" && !errors.Is(err, x.kind) {
				t.Errorf("%s: %s, %v, want %s", name, data, err, x.id)
			}
			if x.id == fault.NameInvalid && fault.Of(err).Field != "syscall" {
				t.Errorf("%s: the error %v has the member %q", name, err, fault.Of(err).Field)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		in, invalid := schema.TypeOf[schema.ToolCall]().Decode(data)
		if invalid != nil {
			t.Fatal(invalid)
		}
		made := in.(*schema.ToolCall)
		outcome, invalid := schema.DecodeOutcome(made.Outcome)
		switch {
		case invalid != nil || made.URI != x.recorded || made.Digest == "":
			t.Errorf("%s: %s, %v", name, data, invalid)
		case x.id == "" && (outcome.Err != nil || string(outcome.Data) != x.data):
			t.Errorf("%s: %s, %v, want %s", name, outcome.Data, outcome.Err, x.data)
		case x.id != "" && (outcome.Err == nil || outcome.Err.ID != x.id || outcome.Err.Kind != x.id.Kind()):
			t.Errorf("%s: %+v, want %s", name, outcome.Err, x.id)
		}
	}
}

// TestOperatorsTurn checks that tools of agents that take all turns hold up other agents, and not the operator.
func TestOperatorsTurn(t *testing.T) {
	t.Parallel()
	c := tools(t, map[string][]byte{"echo": echo()})
	began, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	r := tool.NewRunner(*c, 1, func() (*tool.Programs, error) {
		if calls.Add(1) == 1 {
			close(began)
			<-release
		}
		return nil, nil
	}, slog.New(slog.DiscardHandler))
	token := &kernel.Token{Granted: schema.Token{PID: 7, TokenGrant: schema.TokenGrant{AllowedSyscalls: []string{"Call:echo"}}}}
	run := func(ctx context.Context, pid int64) error {
		_, err := r.Call(ctx, &kernel.Job{PID: pid, Token: token}, &process.Tool{Path: "echo", Input: []byte(`[1]`)})
		return err
	}
	done := make(chan error)
	go func() { done <- run(t.Context(), 7) }()
	<-began
	if err := run(t.Context(), kernel.Operator); err != nil {
		t.Errorf("the operator's tool: %v", err)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it waits"))
	if err := run(over, 8); err == nil || err.Error() != "it waits" {
		t.Errorf("another agent's tool: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
