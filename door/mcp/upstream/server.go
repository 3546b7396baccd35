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

// Time limits and pauses of a server.
const (
	startTime  = 30 * time.Second       // for a server to list its tools, at its start and after a change
	quiet      = 200 * time.Millisecond // after the last notification of a change, before its tools are listed
	firstPause = 500 * time.Millisecond // before a server that has ended is started again
	lastPause  = time.Minute
	goodRun    = time.Minute // after which the pauses are short again
	endTime    = time.Second // of a server whose input has ended, before it is killed
	mostTools  = 2000
)

// protocol is the protocol version for servers. It begins with initialize, which present servers expect.
const protocol = "2025-11-25"

// server is an MCP server that is restarted when it ends. mu guards the fields below it.
type server struct {
	entry    string
	start    Start
	patience time.Duration // of its start
	note     func(format string, args ...any)
	client   *sdk.Client
	again    chan struct{} // ends the pause before a restart
	stale    chan struct{} // the server's list of tools has changed
	reports  sync.Map      // of calls whose callers asked for progress, by call_id: func(*schema.ProgressInput)

	mu      sync.Mutex
	session *sdk.ClientSession // nil: it is not running
	why     string
	tools   []Tool
	come    chan struct{} // closed, and replaced, after each attempt to start
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

// poke sends to a channel of capacity one, and does nothing if the channel is full.
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
		s.note("the server is away: %v; it is restarted in %v", err, wait.Round(time.Millisecond))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-s.again:
		}
	}
}

// set records the state of the server.
func (s *server) set(session *sdk.ClientSession, why string, tools []Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.why, s.tools = session, why, tools
	close(s.come)
	s.come = make(chan struct{})
}

// live starts the server, and returns the reason when it ends. While the server runs, live lists its tools after the start and after
// each change.
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
		_ = session.Close() // err is the reason
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
		case <-s.again: // the server is running already
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

// reason returns the error of what, which failed with err, or the cause of ctx if ctx is done.
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

// list returns all tools of a server.
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
			own = Tool{Name: own.Name, Unfit: "the server offers it twice: the first is used"}
		}
		names[own.Name] = true
		tools = append(tools, own)
	}
	return tools, nil
}

// offer returns a page of the server's present offer. If the server is not running, offer starts it
// at once, and waits for it.
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

// call calls a tool of the server, if the tool has the digest that was accepted. report gets the progress; nil: no
// reports. The error is for the caller.
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
		return nil, &away{fmt.Sprintf(`the MCP server %s is away: %s; the call was not made, see "pwos mcp ls"`, server, why), true}
	case offered == nil:
		return nil, fmt.Errorf("%s is suspended: the server does not offer it any more; %s shows that, and %s takes it away", path, Command("diff", server), Command("accept", server))
	case offered.Unfit != "" || offered.Registration(s.entry).Digest() != asked.Digest:
		return nil, fmt.Errorf("%s is suspended: the server has changed it since it was accepted; %s shows how, and %s accepts it", path, Command("diff", server), Command("accept", server))
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

// longestReport bounds the message of a report in bytes.
const longestReport = 1024

// progressed forwards a server's progress report of a call in flight. Any other report is dropped.
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

// said returns the text of a failed result.
func said(result *sdk.CallToolResult) string {
	var texts []string
	for _, c := range result.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			texts = append(texts, c.Text)
		}
	}
	if len(texts) == 0 {
		return "the tool failed without a message"
	}
	return strings.Join(texts, "\n")
}
