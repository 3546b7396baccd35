package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door/mcp"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// until waits for changes of the tools until a condition holds.
func (h *host) until(what string, holds func() bool) {
	h.t.Helper()
	for !holds() {
		h.t.Log("not yet: " + what)
		h.changed()
	}
}

// TestRegistered checks that a registered and granted syscall is a tool with the registered schema, which the kernel enforces. An
// unregistered one is marked, and a new registration updates the description.
func TestRegistered(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.Get"))
	provider, err := p.dial(testkit.Context(t))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, provider.Close()) })
	register := func(description string) {
		t.Helper()
		_, err := provider.Call(testkit.Context(t), schema.KindCommand, "Syscall.Register", fmt.Appendf(nil,
			`{"name":"Sum.Add","kind":"query","input":{"type":"object","properties":{"a":{"type":"number"}}},"description":%q,"provider":"connection"}`, description))
		testkit.Must(t, err)
	}
	description := func() string {
		if tool := h.tools()["Sum_Add"]; tool != nil {
			return tool.Description
		}
		return ""
	}
	register("Adds.")
	p.operator("Capability.Grant", `{"pid":1,"allowed_syscalls":["Sum.Add"],"mode":"add"}`)
	h.until("the granted tool is offered", func() bool { return description() == "Adds." })
	if tool := h.tools()["Sum_Add"]; !tool.Annotations.ReadOnlyHint || fmt.Sprint(tool.InputSchema) != "map[properties:map[a:map[type:number]] type:object]" {
		t.Errorf("offered %+v with %v", tool.Annotations, tool.InputSchema)
	}
	h.refused("Sum_Add", args{"a": "1"}, "a must be a number", "422")
	p.operator("Syscall.Unregister", `{"name":"Sum.Add"}`)
	h.until("the tool is marked as not granted", func() bool { return strings.HasPrefix(description(), "Not granted at the moment") })
	h.refused("Sum_Add", args{"a": 1}, "Unsupported type Sum.Add")
	register("Adds up.")
	h.until("the tool has its new description", func() bool { return description() == "Adds up." })
}

// TestProgress checks that a host gets progress of a call before the answer if it sent a progress token, and none otherwise.
func TestProgress(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	provider, err := p.dial(testkit.Context(t))
	testkit.Must(t, err)
	var work sync.WaitGroup
	told := make(chan struct{}, 1)
	work.Go(func() {
		register := schema.Message{Kind: schema.KindCommand, Type: "Syscall.Register", Data: []byte(`{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`)}
		_ = provider.Subscribe(context.Background(), register, func(m schema.Message) error {
			in, failure := schema.TypeOf[schema.RequestedEvent]().Decode(m.Data)
			if failure != nil {
				return failure
			}
			asked := in.(*schema.RequestedEvent)
			work.Go(func() {
				total, message := 4.0, "summing"
				_, err := client.Call(context.Background(), provider, schema.SyscallProgress, &schema.ProgressInput{CallID: asked.CallID, Progress: 1.5, Total: &total, Message: &message})
				if err != nil {
					t.Error(err)
				}
				if asked.Progress {
					<-told
				}
				if _, err := client.Call(context.Background(), provider, schema.SyscallComplete, &schema.CompleteInput{CallID: asked.CallID, Data: schema.Value(`3`)}); err != nil {
					t.Error(err)
				}
			})
			return nil
		})
	})
	t.Cleanup(func() {
		testkit.Must(t, provider.Close())
		work.Wait()
	})
	h := connect(t, p.bridge("Memory.*"))
	h.until("the registered tools are offered", func() bool {
		return strings.Contains(p.operator("Syscall.List", `{}`), "Sum.Add")
	})
	p.operator("Capability.Grant", `{"pid":1,"allowed_syscalls":["Sum.Add"],"mode":"add"}`)
	h.until("the granted tool is offered", func() bool { return h.tools()["Sum_Add"] != nil })
	h.expect("Sum_Add", args{}, "3")
	web := &host{t: t, reports: make(chan *sdk.ProgressNotificationParams, 100)}
	c := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { web.reports <- r.Params },
	})
	web.session, err = c.Connect(testkit.Context(t), &sdk.StreamableClientTransport{Endpoint: served(t, p, &mcp.HTTP{}), HTTPClient: &http.Client{Transport: bearer{http.DefaultTransport}}}, nil)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, web.session.Close()) })
	for door, h := range map[string]*host{"lines": h, "http": web} {
		params := &sdk.CallToolParams{Name: "Sum_Add", Arguments: args{}}
		params.SetProgressToken("mine")
		var result *sdk.CallToolResult
		work.Go(func() {
			defer close(h.reports)
			var err error
			if result, err = h.session.CallTool(testkit.Context(t), params); err != nil {
				t.Error(err)
			}
		})
		got := <-h.reports
		told <- struct{}{}
		if got == nil || got.ProgressToken != "mine" || got.Progress != 1.5 || got.Total != 4 || got.Message != "summing" {
			t.Errorf("%s: progress %+v", door, got)
		}
		for more := range h.reports {
			t.Errorf("%s: a second report: %+v", door, more)
		}
		if text, ok := result.Content[0].(*sdk.TextContent); !ok || text.Text != "3" {
			t.Errorf("%s: answered %+v", door, result.Content)
		}
	}
}

// TestManyTools checks that the list of allowed syscalls can be longer than a line.
func TestManyTools(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := connect(t, p.bridge("Memory.Get"))
	provider, err := p.dial(testkit.Context(t))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, provider.Close()) })
	var names []string
	for i := range 400 {
		name := fmt.Sprintf("Many.%sN%d", strings.Repeat("Long", 10), i)
		names = append(names, fmt.Sprintf("%q", name))
		_, err := provider.Call(testkit.Context(t), schema.KindCommand, "Syscall.Register", fmt.Appendf(nil, `{"name":%q,"kind":"query","input":{},"provider":"connection"}`, name))
		testkit.Must(t, err)
	}
	for part := range slices.Chunk(names, 100) {
		p.operator("Capability.Grant", `{"pid":1,"allowed_syscalls":[`+strings.Join(part, ",")+`],"mode":"add"}`)
	}
	h.until("all are offered", func() bool { return len(h.tools()) >= 400 })
}
