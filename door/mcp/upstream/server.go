package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/schema"
)

// How a server is kept.
const (
	startTime  = 30 * time.Second       // of a server, until it has told its tools; of its answer to a change
	quiet      = 200 * time.Millisecond // after the last notification of a change, before it is asked what there is
	firstPause = 500 * time.Millisecond // before a server that has ended is started again
	lastPause  = time.Minute
	goodRun    = time.Minute // after which the pauses are short again
	endTime    = time.Second // of a server whose input has ended, before it is killed
	mostTools  = 2000
)

// protocol is the version that servers are spoken to in: one that begins with initialize, as servers of today expect.
const protocol = "2025-11-25"

// server is an MCP server, started again when it ends. Its fields below mu are what is known of it now.
type server struct {
	entry    string
	start    Start
	patience time.Duration // of its start
	note     func(format string, args ...any)
	client   *sdk.Client
	again    chan struct{} // it is asked for: a pause ends
	stale    chan struct{} // its list has changed
	reports  sync.Map      // of calls whose callers want to know how far they have come, by call_id: func(*schema.ProgressInput)

	mu      sync.Mutex
	session *sdk.ClientSession // nil: it is away
	why     string
	tools   []Tool
	come    chan struct{} // closed, and made anew, when a start has come to something
}

func newServer(entry string, o *Options) *server {
	s := &server{
		entry: entry, start: o.Start, patience: cmp.Or(o.Patience, startTime), note: o.Note, again: make(chan struct{}, 1), stale: make(chan struct{}, 1), come: make(chan struct{}),
		why: "it has not been started yet",
	}
	s.client = sdk.NewClient(&sdk.Implementation{Name: "pwos", Title: "pwos", Version: o.Version}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { poke(s.stale) },
		ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) { s.progressed(n.Params) },
	})
	return s
}

// poke leaves a token in a channel that has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// keep runs the server until ctx ends.
func (s *server) keep(ctx context.Context) {
	pause := &backoff.ExponentialBackOff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: lastPause, RandomizationFactor: 0.1}
	pause.Reset()
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.live(ctx)
		s.set(nil, err.Error(), nil)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) >= goodRun {
			pause.Reset()
		}
		wait := pause.NextBackOff()
		s.note("the server is away: %v; it is started again in %v", err, wait.Round(time.Millisecond))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-s.again:
		}
	}
}

// set notes what has become of the server.
func (s *server) set(session *sdk.ClientSession, why string, tools []Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.why, s.tools = session, why, tools
	close(s.come)
	s.come = make(chan struct{})
}

// live is one run of the server. It returns why that ended.
func (s *server) live(ctx context.Context) error {
	starting, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("it did not answer within %v of its start", s.patience))
	defer cancel()
	transport, err := s.start(starting)
	if err != nil {
		return err
	}
	session, err := s.client.Connect(starting, transport, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return reason(starting, "start it", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	over := func(err error) error {
		_ = session.Close() // what it ends with is said by err
		<-ended
		return err
	}
	tools, err := s.list(starting, session)
	if err != nil {
		return over(reason(starting, "ask for its tools", err))
	}
	s.set(session, "", tools)
	s.note("the server offers %d tools", len(tools))
	settled := time.NewTimer(0)
	settled.Stop()
	defer settled.Stop()
	for {
		select {
		case err := <-ended:
			ended <- nil
			return over(errors.Join(errors.New("it has ended"), err))
		case <-ctx.Done():
			return over(context.Cause(ctx))
		case <-s.again: // it is there
		case <-s.stale:
			settled.Reset(quiet)
		case <-settled.C:
			asking, done := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("it did not answer within %v", s.patience))
			tools, err := s.list(asking, session)
			err = reason(asking, "ask for its tools", err)
			done()
			if err != nil {
				return over(err)
			}
			s.set(session, "", tools)
		}
	}
}

// reason says what was tried when err came, or that the time for it was over.
func reason(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*away](err); ok {
		return refused
	}
	return fmt.Errorf("%s: %w", what, err)
}

// list asks a server for all its tools.
func (s *server) list(ctx context.Context, session *sdk.ClientSession) ([]Tool, error) {
	tools := []Tool{}
	names := make(map[string]bool)
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(tools) == mostTools {
			return nil, fmt.Errorf("it offers more than %d tools", mostTools)
		}
		own := toolOf(s.entry, t)
		if names[own.Name] {
			own = Tool{Name: own.Name, Unfit: "the server offers it twice: the first is taken"}
		}
		names[own.Name] = true
		tools = append(tools, own)
	}
	return tools, nil
}

// offer is a page of what the server offers now. One that is away is started at once, and waited for.
func (s *server) offer(ctx context.Context, after int64) *Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		come := s.come
		s.mu.Unlock()
		poke(s.again)
		select {
		case <-come:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	if s.session == nil {
		return &Offer{Away: s.why, Tools: []Tool{}}
	}
	return page(s.tools, after)
}

// call has the server carry out a call of a tool that was accepted with a digest. report is told how far it has come; nil: that is not
// wanted. The error is for the caller.
func (s *server) call(ctx context.Context, asked *schema.RequestedEvent, report func(*schema.ProgressInput)) (schema.Value, error) {
	path, params := asked.Type, &sdk.CallToolParams{Arguments: asked.Data}
	s.mu.Lock()
	session, why := s.session, s.why
	name := strings.TrimPrefix(path, s.entry+"/")
	server := strings.TrimPrefix(s.entry, "mcp/")
	var offered *Tool
	for i := range s.tools {
		if s.tools[i].Name == name {
			offered = &s.tools[i]
			break
		}
	}
	s.mu.Unlock()
	switch {
	case session == nil:
		return nil, &away{fmt.Sprintf(`the MCP server %s is away: %s; nothing was done, see "pwos mcp ls"`, server, why), true}
	case offered == nil:
		return nil, fmt.Errorf(`%s is suspended: the server does not offer it any more; "pwos mcp diff %s" shows that, and "pwos mcp accept %s" takes it away`, path, server, server)
	case offered.Unfit != "" || offered.Registration(s.entry).Digest() != asked.Digest:
		return nil, fmt.Errorf(`%s is suspended: the server has changed it since it was accepted; "pwos mcp diff %s" shows how, and "pwos mcp accept %s" accepts it`, path, server, server)
	}
	if params.Name = name; report != nil {
		params.SetProgressToken(asked.CallID)
		s.reports.Store(asked.CallID, report)
		defer s.reports.Delete(asked.CallID)
	}
	result, err := session.CallTool(ctx, params)
	if refused, ok := errors.AsType[*away](err); ok {
		return nil, refused
	}
	if errors.Is(err, io.EOF) || errors.Is(err, sdk.ErrConnectionClosed) {
		return nil, fmt.Errorf("the MCP server %s ended before it answered: the call may or may not have had effects", server)
	}
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", path, err)
	}
	if result.IsError {
		return nil, errors.New(said(result))
	}
	result.Meta = nil
	if result.Content == nil {
		result.Content = []sdk.Content{}
	}
	answer, err := result.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", path, err)
	}
	return answer, nil
}

// longestReport is how many bytes the message of a report has room for.
const longestReport = 1024

// progressed hands on what a server says of a call that is under way. What it says of another is dropped.
func (s *server) progressed(n *sdk.ProgressNotificationParams) {
	id, _ := n.ProgressToken.(string)
	report, ok := s.reports.Load(id)
	if !ok {
		return
	}
	in := &schema.ProgressInput{CallID: id, Progress: n.Progress}
	if n.Total != 0 {
		in.Total = &n.Total
	}
	if n.Message != "" {
		message := clip(n.Message, longestReport)
		in.Message = &message
	}
	report.(func(*schema.ProgressInput))(in)
}

// said is the text of a result.
func said(result *sdk.CallToolResult) string {
	var texts []string
	for _, c := range result.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, c.Text)
		}
	}
	if len(texts) == 0 {
		return "the tool failed, and does not say why"
	}
	return strings.Join(texts, "\n")
}
