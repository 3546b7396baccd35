package mcp_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/mcp"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// place is a testkit.Place with a kernel in this process.
type place struct {
	t   testing.TB
	cfg config.Config
	end func() // stops the kernel
}

func newPlace(t testing.TB) *place {
	t.Helper()
	return newPlaceWith(t, func(*config.Config) {})
}

func newPlaceWith(t testing.TB, edit func(*config.Config)) *place {
	t.Helper()
	p := &place{t: t, cfg: testkernel.Settings(testkit.NewPlace(t, ""))}
	edit(&p.cfg)
	p.start()
	return p
}

// start starts the kernel again with the existing state.
func (p *place) start() { p.t.Helper(); p.end = testkernel.Start(p.t, p.cfg) }

func (p *place) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, client.Options{RuntimeDir: p.cfg.RuntimeDir, Patience: testkit.Patience})
}

// operator makes one call as the operator, and returns the data of the answer.
func (p *place) operator(typ, data string) string {
	p.t.Helper()
	c, err := p.dial(testkit.Context(p.t))
	testkit.Must(p.t, err)
	defer func() { testkit.Must(p.t, c.Close()) }()
	row, _ := schema.Lookup(typ)
	answer, err := c.Call(testkit.Context(p.t), row.Kind, typ, []byte(data))
	testkit.Must(p.t, err)
	return string(answer.Data)
}

// bridge returns a bridge that acts as the process bob with the grant allow.
func (p *place) bridge(allow ...string) *mcp.Bridge { return p.bridgeTrusting("", allow...) }

// bridgeTrusting returns a bridge that trusts the elicitations of a host.
func (p *place) bridgeTrusting(trusted string, allow ...string) *mcp.Bridge {
	return mcp.New(mcp.Options{
		TrustHost: trusted, Patience: time.Minute,
		Agent: door.Agent{Name: "bob", Allow: allow}, Dial: p.dial, Redial: p.dial, Note: p.t.Logf, Version: "test",
	})
}

// host is an MCP host on the other end of a bridge's streams.
type host struct {
	t       testing.TB
	session *sdk.ClientSession
	lists   chan struct{} // one element per tools/list_changed notification
	reports chan *sdk.ProgressNotificationParams
	served  chan error // the result of ServeLines
}

// connect returns a host that is connected to a bridge.
func connect(t testing.TB, b *mcp.Bridge) *host {
	t.Helper()
	return connectAnswering(t, b, nil)
}

// connectAnswering is connect for a host that answers elicitations with elicited; nil: the host does not support them.
func connectAnswering(t testing.TB, b *mcp.Bridge, elicited func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error)) *host {
	t.Helper()
	h := &host{t: t, lists: make(chan struct{}, 100), reports: make(chan *sdk.ProgressNotificationParams, 100), served: make(chan error, 1)}
	fromHost, toBridge := io.Pipe()
	fromBridge, toHost := io.Pipe()
	go func() {
		h.served <- errors.Join(b.ServeLines(context.Background(), fromHost, toHost), fromHost.Close(), toHost.Close())
	}()
	c := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler:          elicited,
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { h.lists <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { h.reports <- r.Params },
	})
	session, err := c.Connect(testkit.Context(t), &sdk.IOTransport{Reader: fromBridge, Writer: toBridge}, nil)
	testkit.Must(t, err)
	h.session = session
	t.Cleanup(h.close)
	return h
}

// close ends the host's side, which ends the bridge.
func (h *host) close() {
	if h.session == nil {
		return
	}
	_ = h.session.Close() // fails if the bridge has closed the streams first
	h.session = nil
	if err := <-h.served; err != nil && !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) { // the host may have closed it
		h.t.Error(err)
	}
}

// tools returns the offered tools, by name.
func (h *host) tools() map[string]*sdk.Tool {
	h.t.Helper()
	all := make(map[string]*sdk.Tool)
	for tool, err := range h.session.Tools(testkit.Context(h.t), nil) {
		testkit.Must(h.t, err)
		all[tool.Name] = tool
	}
	return all
}

// call calls a tool, and returns the text of its result and whether it is an error.
func (h *host) call(name string, arguments any) (text string, isError bool) {
	h.t.Helper()
	result, err := h.session.CallTool(testkit.Context(h.t), &sdk.CallToolParams{Name: name, Arguments: arguments})
	testkit.Must(h.t, err)
	for _, c := range result.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			text += c.Text
		}
	}
	return text, result.IsError
}

// expect calls a tool, and checks that it succeeds with the text want.
func (h *host) expect(name string, arguments any, want string) {
	h.t.Helper()
	if got, isError := h.call(name, arguments); isError || got != want {
		h.t.Errorf("%s %v: %q, an error: %t, want %q", name, arguments, got, isError, want)
	}
}

// refused calls a tool, and checks that it fails with a text that has all texts of want.
func (h *host) refused(name string, arguments any, want ...string) {
	h.t.Helper()
	got, isError := h.call(name, arguments)
	for _, part := range want {
		if !isError || !strings.Contains(got, part) {
			h.t.Errorf("%s %v: %q, an error: %t, want an error with %q", name, arguments, got, isError, part)
		}
	}
}

// changed waits for a tools/list_changed notification.
func (h *host) changed() {
	h.t.Helper()
	select {
	case <-h.lists:
	case <-testkit.Context(h.t).Done():
		h.t.Fatal("the host was not notified that the tools have changed")
	}
}
