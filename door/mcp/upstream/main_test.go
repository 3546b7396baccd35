package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door/mcp/upstream"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// place is a running kernel. provide adds the entry mcp/fake, whose bridge is the process mcp.fake.
type place struct {
	t        *testing.T
	runtime  string // the runtime directory
	operator *client.Client
	notes    chan string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	cfg := testkernel.Settings(testkit.NewPlace(t, ""))
	testkernel.Start(t, cfg)
	p := &place{t: t, runtime: cfg.RuntimeDir, notes: make(chan string, 1000)}
	p.operator = p.dial(false)
	return p
}

// dial returns a connection of the operator.
func (p *place) dial(events bool) *client.Client {
	p.t.Helper()
	return testkernel.DialWith(p.t, client.Options{RuntimeDir: p.runtime, Events: events})
}

// agent returns a connection that acts as the process of a name.
func (p *place) agent(name string, events bool, allow ...string) *client.Client {
	p.t.Helper()
	c := p.dial(events)
	in := &schema.AttachInput{AgentID: name}
	if allow != nil {
		in.Capabilities = &schema.SpawnCapability{AllowedSyscalls: allow}
	}
	_, err := client.Call(testkit.Context(p.t), c, schema.ProcessAttach, in)
	testkit.Must(p.t, err)
	return c
}

// provide registers the entry and runs a bridge that provides it. The bridge calls start each time it starts the server.
func (p *place) provide(start upstream.Start, o upstream.Options) {
	p.t.Helper()
	_, err := client.Call(testkit.Context(p.t), p.operator, schema.SyscallRegister, upstream.Entry("mcp/fake", ""))
	testkit.Must(p.t, err)
	o.Name, o.Kernel, o.Start, o.Version = "fake", p.agent("mcp.fake", true, "Call:mcp/fake"), start, "test"
	o.Note = func(format string, _ ...any) { p.notes <- format }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- upstream.Run(ctx, &o) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			p.t.Errorf("the bridge: %v", err)
		}
	})
}

// offer returns the present offer of the server.
func (p *place) offer() *upstream.Offer {
	p.t.Helper()
	offer, err := upstream.Ask(testkit.Context(p.t), p.operator, "fake")
	testkit.Must(p.t, err)
	return offer
}

// changes returns the changes, each as a kind and a name, and accepts them if accept is true.
func (p *place) changes(accept bool) string {
	p.t.Helper()
	list, err := client.Call(testkit.Context(p.t), p.operator, schema.SyscallList, &schema.ListInput{})
	testkit.Must(p.t, err)
	var accepted, all []string
	for _, path := range list.Paths {
		if tool, ok := strings.CutPrefix(path, "mcp/fake/"); ok {
			accepted = append(accepted, tool)
		}
	}
	offer := p.offer()
	changes, err := upstream.Changes(testkit.Context(p.t), p.operator, "fake", accepted, offer)
	testkit.Must(p.t, err)
	for _, ch := range changes {
		all = append(all, ch.Change+" "+ch.Tool)
		if accept {
			testkit.Must(p.t, ch.Accept(testkit.Context(p.t), p.operator, "fake", offer))
		}
	}
	return strings.Join(all, ", ")
}

// call calls a tool and returns its answer.
func call(ctx context.Context, c *client.Client, tool, data string) (string, error) {
	out, err := client.Call(ctx, c, schema.SyscallCall, &schema.CallInput{Syscall: "os/mcp/fake/" + tool, Args: []schema.Value{schema.Value(data)}})
	if err != nil {
		return "", err
	}
	return string(*out), nil
}

// expect calls a tool, and checks that the answer is want.
func (p *place) expect(tool, data, want string) {
	p.t.Helper()
	if got, err := call(testkit.Context(p.t), p.operator, tool, data); err != nil || got != want {
		p.t.Errorf("%s %s: %s, %v, want %s", tool, data, got, err, want)
	}
}

// refused calls a tool, and checks that it fails with a message that has all texts of want.
func (p *place) refused(c *client.Client, tool, data string, want ...string) {
	p.t.Helper()
	got, err := call(testkit.Context(p.t), c, tool, data)
	for _, part := range want {
		if err == nil || !strings.Contains(err.Error(), part) {
			p.t.Errorf("%s %s: %s, %v, want an error with %q", tool, data, got, err, part)
		}
	}
}

// tool adds a tool to a server.
func tool(s *sdk.Server, name, description string, do func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	s.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}, do)
}

func texts(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// says returns a handler that always answers with text.
func says(text string) func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return texts(text), nil }
}

func newServer() *sdk.Server {
	return sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
}

// serving returns a Start that runs the server in this process.
func serving(t *testing.T, server *sdk.Server) upstream.Start {
	t.Helper()
	var lives sync.WaitGroup
	t.Cleanup(lives.Wait)
	return func(context.Context) (sdk.Transport, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		lives.Go(func() { _ = server.Run(context.Background(), theirs) }) // it ends with its client
		return ours, nil
	}
}

// scripted returns a Start of a server that answers each line with the lines that answer returns. It ends at an empty line.
func scripted(t *testing.T, answer func(line string) []string) upstream.Start {
	t.Helper()
	var lives sync.WaitGroup
	t.Cleanup(lives.Wait)
	return func(context.Context) (sdk.Transport, error) {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		lives.Go(func() {
			defer func() { _ = out.Close() }()
			lines := json.NewDecoder(in)
			for {
				var line json.RawMessage
				if lines.Decode(&line) != nil {
					return
				}
				for _, text := range answer(string(line)) {
					if text == "" { // the server ends
						_ = in.Close()
						return
					}
					if _, err := io.WriteString(out, text+"\n"); err != nil {
						_ = in.Close()
						return
					}
				}
			}
		})
		return &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil
	}
}
