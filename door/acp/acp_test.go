package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/door/acp"
	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// sides are an editor and a host with a door between them.
type sides struct {
	t            testing.TB
	door         *acp.Door
	editor, host *end
	served       chan error

	mu    sync.Mutex
	uses  []acp.Use
	notes []string
	ended []string
}

// end is what an editor or a host has of its connection.
type end struct {
	t   testing.TB
	in  *bufio.Reader
	out io.WriteCloser
}

func (e *end) send(lines ...string) {
	e.t.Helper()
	for _, line := range lines {
		_, err := io.WriteString(e.out, line+"\n")
		testkit.Must(e.t, err)
	}
}

// expect reads a line, which must be want; a * in it stands for anything.
func (e *end) expect(want string) string {
	e.t.Helper()
	line, err := e.in.ReadString('\n')
	testkit.Must(e.t, err)
	rest, parts := strings.TrimSuffix(line, "\n"), strings.Split(want, "*")
	for i, part := range parts {
		at := strings.Index(rest, part)
		if at < 0 || i == 0 && at > 0 || i == len(parts)-1 && !strings.HasSuffix(rest, part) {
			e.t.Fatalf("got  %s\nwant %s", line, want)
		}
		rest = rest[at+len(part):]
	}
	return line
}

// connect returns both sides. decide is the kernel; nil allows all.
func connect(t testing.TB, decide func(ctx context.Context, use *acp.Use) (bool, string)) *sides {
	s := &sides{t: t, served: make(chan error, 1)}
	s.door = acp.New(acp.Options{
		Host: "fake",
		Reaches: func(dir string) error {
			if !strings.HasPrefix(dir, "/project") {
				return errors.New("fake does not work in " + dir)
			}
			return nil
		},
		Decide: func(ctx context.Context, use *acp.Use) (bool, string) {
			s.mu.Lock()
			s.uses = append(s.uses, *use)
			s.mu.Unlock()
			if decide == nil {
				return true, ""
			}
			return decide(ctx, use)
		},
		Ended: func(use *acp.Use, failed bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, use.ID, fmt.Sprint(failed))
		},
		Note: func(format string, args ...any) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.notes = append(s.notes, fmt.Sprintf(format, args...))
		},
	})
	pipe := func() (*bufio.Reader, *io.PipeReader, *io.PipeWriter) {
		r, w := io.Pipe()
		return bufio.NewReaderSize(r, 1<<16), r, w
	}
	_, fromEditor, editorOut := pipe()
	editorIn, toEditorR, toEditor := pipe()
	_, fromHost, hostOut := pipe()
	hostIn, _, toHost := pipe()
	s.editor, s.host = &end{t, editorIn, editorOut}, &end{t, hostIn, hostOut}
	go func() {
		err := s.door.Serve(context.Background(), fromEditor, toEditor, fromHost, toHost)
		s.served <- errors.Join(err, toEditor.Close())
	}()
	late := time.AfterFunc(testkit.Patience, func() { _, _ = toEditorR.Close(), toHost.Close() }) // what is expected does not come
	t.Cleanup(func() {
		late.Stop()
		_, _, _ = toEditorR.Close(), hostOut.Close(), editorOut.Close()
		testkit.Must(t, <-s.served)
	})
	return s
}

// session makes the editor have a session.
func (s *sides) session() {
	s.t.Helper()
	s.editor.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/project","mcpServers":[]}}`)
	s.host.expect(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/project","mcpServers":[]}}`)
	s.host.send(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`)
	s.editor.expect(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`)
}

// synced makes sure that the door has handled what both sides have sent.
func (s *sides) synced() {
	s.t.Helper()
	s.editor.send(`{"jsonrpc":"2.0","id":"sync","method":"_sync"}`)
	s.host.expect(`{"jsonrpc":"2.0","id":"sync","method":"_sync"}`)
	s.host.send(`{"jsonrpc":"2.0","id":"sync","result":null}`)
	s.editor.expect(`{"jsonrpc":"2.0","id":"sync","result":null}`)
}

// TestOffer: an editor offers a host neither files nor terminals, and a host offers an editor no command to log in with.
func TestOffer(t *testing.T) {
	t.Parallel()
	s := connect(t, nil)
	s.editor.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,` +
		`"auth":{"terminal":true},"_meta":{"terminal-auth":true}},"clientInfo":{"name":"zed","version":"1"},"_meta":{}}}`)
	s.host.expect(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},` +
		`"clientInfo":{"name":"zed","version":"1"},"protocolVersion":1}}`)
	s.host.send(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"authMethods":[{"id":"x","type":"terminal","args":["-c","touch /pwned"]}],"_meta":{"terminal-auth":{"command":"sh"}},"agentInfo":{"name":"a"}}}`)
	s.editor.expect(`{"jsonrpc":"2.0","id":0,"result":{"agentInfo":{"name":"a"},"authMethods":[],"protocolVersion":1}}`)
	s.editor.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/project"}}`)
	s.host.expect(`*"session/new"*`)
	s.host.send(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Authentication required","data":{"authMethods":[{"command":"sh"}]}}}`)
	s.editor.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Authentication required: \"pwos login\" gives the kernel a login for fake"}}`)
}

// TestHostAsks: what would have the editor act for the host never reaches it, in whatever form.
func TestHostAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, answer string }{
		"write a file":  {`{"jsonrpc":"2.0","id":7,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/home/u/.bashrc","content":"x"}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,*`},
		"read a file":   {`{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{"path":"/x"}}`, `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,*`},
		"a terminal":    {`{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":{"command":"sh"}}`, `*"code":-32601,*terminal/create*`},
		"an extension":  {`{"jsonrpc":"2.0","id":7,"method":"_zed/run","params":{}}`, `*"code":-32601,*`},
		"a long name":   {`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", 1000) + `"}`, `*"code":-32601,*xxx...*`},
		"a notice":      {`{"jsonrpc":"2.0","method":"fs/write_text_file","params":{"path":"/x","content":"x"}}`, ""},
		"a twin":        {`{"jsonrpc":"2.0","id":7,"method":"session/update","method":"terminal/create","params":{}}`, ""},
		"a twin, coded": {`{"jsonrpc":"2.0","id":7,"method":"session/update","\u006dethod":"terminal/create","params":{}}`, ""},
		"a batch":       {`[{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":{}}]`, ""},
		"two in one":    {`{"jsonrpc":"2.0","method":"session/update"}{"jsonrpc":"2.0","id":7,"method":"terminal/create"}`, ""},
		"both":          {`{"jsonrpc":"2.0","id":7,"method":"terminal/create","result":{}}`, ""},
		"half":          {`{"jsonrpc":"2.0","id":7,"meth`, ""},
		"garbage":       {"\x1b]0;title\x07 starting...", ""},
		"bad UTF-8":     {"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"x\":\"\xff\"}}", ""},
		"an older one":  {`{"id":7,"method":"terminal/create"}`, ""},
		"no answer":     {`{"jsonrpc":"2.0","id":77,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`, ""},
		"a guess":       {`{"jsonrpc":"2.0","id":"pwos-1","result":{"outcome":{"outcome":"selected","optionId":"once"}}}`, ""},
		"an id of null": {`{"jsonrpc":"2.0","id":null,"method":"terminal/create"}`, ""},
		"an odd id":     {`{"jsonrpc":"2.0","id":1.5,"method":"terminal/create"}`, ""},
		"an object id":  {`{"jsonrpc":"2.0","id":{"a":1},"method":"terminal/create"}`, ""},
		"a list":        {`{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":["sh"]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := connect(t, nil)
			s.session()
			s.host.send(c.line)
			if c.answer != "" {
				s.host.expect(c.answer)
			}
			s.synced() // nothing else came before
			if s.mu.Lock(); c.answer == "" && len(s.notes) != 1 {
				t.Errorf("the person is told %q", s.notes)
			}
			s.mu.Unlock()
		})
	}
}

// TestUpdate: an update is shown, and cannot be read as another message by a reader that ends lines elsewhere.
func TestUpdate(t *testing.T) {
	t.Parallel()
	s := connect(t, nil)
	s.session()
	s.host.send("{ \"jsonrpc\" : \"2.0\",\t\"method\":\"session/update\", \"more\": 1, \"params\":{\"sessionId\":\"s\",\"update\":[1,\r{\"method\":\"terminal/create\"},\r\"a \\\" \u2028\u2029\u0085{\\\\ é\"]}}")
	s.editor.expect(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":[1,{"method":"terminal/create"},"a \" \u2028\u2029\u0085{\\ é"]}}`)
}

// TestEditorAsks: what an editor sends that is no message, or that the host could not do, is answered.
func TestEditorAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, answer string }{
		"garbage":          {`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":*`},
		"half":             {`{"jsonrpc":"2.0","id":1`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":*`},
		"a batch":          {`[{"jsonrpc":"2.0","id":1,"method":"x"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":*batches*`},
		"no version":       {`{"id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":*`},
		"another place":    {`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/etc"}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"fake does not work in /etc"}}`},
		"one more place":   {`{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"cwd":"/project","additionalDirectories":["/project/a","/etc"]}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,*/etc"}}`},
		"a used id":        {`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{}}`, `{"jsonrpc":"2.0","id":"p","error":{"code":-32600,*in flight*`},
		"a used id, coded": {`{"jsonrpc":"2.0","id":"\u0070","method":"session/prompt","params":{}}`, `{"jsonrpc":"2.0","id":"p","error":{"code":-32600,*in flight*`},
		"a long line":      {`{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":"` + strings.Repeat("x", 33<<20) + `"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the line is longer*`},
		"a long id":        {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"x"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"an id*`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := connect(t, nil)
			s.session()
			s.editor.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s"}}`)
			s.host.expect(`*session/prompt*`)
			s.editor.send("", c.line)
			s.editor.expect(c.answer)
			s.editor.send(`{"jsonrpc":"2.0","id":9,"result":{}}`) // to no request
			s.synced()
		})
	}
}

const (
	asks = `{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"run it","kind":"%s","rawInput":{"command":"x"},` +
		`"_meta":{"claudeCode":{"toolName":"Bash"}}},"options":[{"optionId":"all","name":"x","kind":"allow_always"},{"optionId":"yes","name":"x","kind":"allow_once"},{"optionId":"no","name":"x","kind":"reject_once"}]}}`
	allowed = `{"jsonrpc":"2.0","id":%d,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`
	over    = `{"jsonrpc":"2.0","id":%d,"result":{"outcome":{"outcome":"cancelled"}}}`
)

// TestPermission: the kernel decides what a host asks permission for, once, and the editor's user hears why it is denied.
func TestPermission(t *testing.T) {
	t.Parallel()
	s := connect(t, func(_ context.Context, use *acp.Use) (bool, string) { return use.Kind == "execute", "not granted" })
	s.session()
	s.host.send(fmt.Sprintf(asks, 5, "execute"))
	s.host.expect(fmt.Sprintf(allowed, 5))
	s.host.send(fmt.Sprintf(asks, 6, "edit"))
	s.editor.expect(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"content":[{"type":"content","content":{"type":"text","text":"pwos: not granted"}}],` +
		`"sessionUpdate":"tool_call","status":"failed","title":"run it","toolCallId":"t"}}}`)
	s.host.expect(`{"jsonrpc":"2.0","id":6,"result":{"outcome":{"outcome":"selected","optionId":"no"},"_meta":{"pwos":{"reason":"not granted"}}}}`)
	s.host.send(strings.Replace(fmt.Sprintf(asks, 7, "edit"), `"reject_once"`, `"other"`, 1))
	s.editor.expect(`*not granted*`)
	s.host.expect(fmt.Sprintf(over, 7))
	for _, bad := range []string{`{}`, `{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}`, `{"sessionId":"s","options":[{"optionId":"yes","kind":"allow_once"}]}`} {
		s.host.send(`{"jsonrpc":"2.0","id":8,"method":"session/request_permission","params":` + bad + `}`)
		s.host.expect(`{"jsonrpc":"2.0","id":8,"error":{"code":-32602,*`)
	}
	s.synced()
	if use := s.uses[0]; use.Tool != "Bash" || use.Session != "s" || use.ID != "t" || string(use.Input) != `{"command":"x"}` {
		t.Errorf("the kernel is asked about %+v", use)
	}
	s.host.send(`{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"look"},"options":[{"optionId":"yes","kind":"allow_once"}]}}`)
	s.editor.expect(`*not granted*`)
	s.host.expect(fmt.Sprintf(over, 9))
	if use := s.uses[3]; use.Kind != "other" || string(use.Input) != `{"title":"look"}` {
		t.Errorf("the kernel is asked about %+v", use)
	}
}

// TestTwoTools: the kernel is asked about one tool, and not about one of two by chance.
func TestTwoTools(t *testing.T) {
	t.Parallel()
	s := connect(t, nil)
	s.session()
	s.host.send(strings.Replace(fmt.Sprintf(asks, 5, "execute"), `"claudeCode":`, `"other":{"toolName":"Read"},"claudeCode":`, 1))
	s.host.expect(`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,*`)
	s.host.send(strings.Replace(fmt.Sprintf(asks, 6, "execute"), `"claudeCode":`, `"other":{"toolName":"Bash"},"claudeCode":`, 1))
	s.host.expect(fmt.Sprintf(allowed, 6))
}

// TestPlan: what is no tool, and what cannot be allowed once, the editor's user answers too.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := connect(t, nil)
	s.session()
	id := func(line string) string {
		var m struct{ ID string }
		testkit.Must(t, json.Unmarshal([]byte(line), &m))
		return m.ID
	}
	for answer, want := range map[string]string{
		`"result":{"outcome":{"outcome":"selected","optionId":"all"}}`: `{"jsonrpc":"2.0","id":5,"result":{"outcome":{"outcome":"selected","optionId":"all"}}}`,
		`"result":{"outcome":{"outcome":"selected","optionId":"xxx"}}`: fmt.Sprintf(over, 5),
		`"result":7`:                             fmt.Sprintf(over, 5),
		`"error":{"code":-32601,"message":"no"}`: fmt.Sprintf(over, 5),
	} {
		s.host.send(fmt.Sprintf(asks, 5, "switch_mode"))
		line := s.editor.expect(`{"jsonrpc":"2.0","id":"pwos-*","method":"session/request_permission","params":*switch_mode*`)
		s.editor.send(`{"jsonrpc":"2.0","id":"`+id(line)+`",`+answer+`}`, `{"jsonrpc":"2.0","id":"`+id(line)+`","result":{}}`)
		s.host.expect(want)
	}
}

// TestSpam: a host has few requests for permission in flight, which end with the turn, and with it.
func TestSpam(t *testing.T) {
	t.Parallel()
	s := connect(t, func(ctx context.Context, _ *acp.Use) (bool, string) { <-ctx.Done(); return true, "" })
	s.session()
	for i := range 16 {
		s.host.send(fmt.Sprintf(asks, i, "execute"))
	}
	s.host.send(fmt.Sprintf(asks, 3, "execute"))
	s.host.expect(`{"jsonrpc":"2.0","id":3,"error":{"code":-32600,*in flight*`)
	s.host.send(fmt.Sprintf(asks, 99, "execute"))
	s.host.expect(`{"jsonrpc":"2.0","id":99,"error":{"code":-32029,*`)
	s.editor.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"other"}}`, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`)
	for other, passed := 0, 0; other < 16 || passed < 2; {
		if line := s.host.expect("*"); strings.Contains(line, "session/cancel") {
			passed++
		} else if other++; !strings.Contains(line, "cancelled") {
			t.Errorf("after the end of the turn: %s", line)
		}
	}
	s.host.send(fmt.Sprintf(asks, 3, "execute")) // and ends with the host
}

// TestEnded: the end of what was allowed is known, by what the host says, and at the end of its turn.
func TestEnded(t *testing.T) {
	t.Parallel()
	s := connect(t, func(_ context.Context, use *acp.Use) (bool, string) { return use.Kind == "execute", "no" })
	s.session()
	s.editor.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}`)
	s.host.expect(`*session/prompt*`)
	for i, kind := range []string{"execute", "edit"} {
		s.host.send(strings.Replace(fmt.Sprintf(asks, i, kind), `"t"`, fmt.Sprintf(`"t%d"`, i), 1))
		if kind == "edit" {
			s.editor.expect("*")
		}
		s.host.expect("*")
	}
	for _, update := range []string{`"t0","status":"in_progress"`, `"t1","status":"completed"`, `"t0","status":"failed"`, `"t0","status":"completed"`} {
		s.host.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":` + update + `}}}`)
		s.editor.expect("*")
	}
	s.host.send(strings.Replace(fmt.Sprintf(asks, 3, "execute"), `"t"`, `"t3"`, 1))
	s.host.expect("*")
	s.host.send(`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
	s.editor.expect("*")
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.ended, " "); got != "t0 true t3 false" {
		t.Errorf("%s has ended", got)
	}
}

// TestAsk: the editor's user answers a question of the kernel's, in the session of the last prompt, and no one else; what ends before it is answered is taken away.
func TestAsk(t *testing.T) {
	t.Parallel()
	s := connect(t, nil)
	q := &acp.Question{Title: "fake wants to push", Detail: "git push"}
	if _, err := s.door.Ask(t.Context(), q); err == nil {
		t.Error("it is asked before there is a session")
	}
	s.session()
	for option, want := range map[string]acp.Answer{"once": acp.Once, "hour": acp.Hour, "refuse": acp.Refuse, "other": acp.None} {
		got := make(chan acp.Answer)
		go func() {
			answer, _ := s.door.Ask(t.Context(), q)
			got <- answer
		}()
		var m struct {
			ID     string
			Params struct{ ToolCall struct{ ToolCallID string } }
		}
		testkit.Must(t, json.Unmarshal([]byte(s.editor.expect(`{"jsonrpc":"2.0","id":"pwos-*","method":"session/request_permission","params":{*"allow_once"*"sessionId":"s","toolCall":*"text":"`+"```\\ngit push\\n```"+`"*`+"\"`fake wants to push`\""+`*`)), &m))
		s.host.send(`{"jsonrpc":"2.0","id":"` + m.ID + `","result":{"outcome":{"outcome":"selected","optionId":"once"}}}`) // forged
		s.editor.send(`{"jsonrpc":"2.0","id":"` + m.ID + `","result":{"outcome":{"outcome":"selected","optionId":"` + option + `"}}}`)
		s.editor.expect(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{*"` + m.Params.ToolCall.ToolCallID + `"}}}`)
		if answer := <-got; answer != want {
			t.Errorf("%s is %v", option, answer)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.door.Ask(ctx, q)
		ended <- err
	}()
	s.editor.expect(`*session/request_permission*`)
	cancel()
	s.editor.expect(`*"failed"*`)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a question that has ended: %v", err)
	}
}

// TestHostDoesNotRead: what waits for a host that does not read keeps back neither the answer to a question, nor the end of the editor;
// what there is no room for is answered.
func TestHostDoesNotRead(t *testing.T) {
	t.Parallel()
	s := connect(t, nil)
	s.session()
	for range 200 {
		s.editor.send(`{"jsonrpc":"2.0","method":"_more"}`)
	}
	s.editor.send(`{"jsonrpc":"2.0","id":7,"method":"_late"}`)
	s.editor.expect(`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"fake does not read what the editor says: try again later"}}`)
	got := make(chan acp.Answer)
	go func() {
		answer, _ := s.door.Ask(t.Context(), &acp.Question{Title: "x", Detail: "y"})
		got <- answer
	}()
	var m struct{ ID string }
	testkit.Must(t, json.Unmarshal([]byte(s.editor.expect(`*session/request_permission*`)), &m))
	s.editor.send(`{"jsonrpc":"2.0","id":"` + m.ID + `","result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
	s.editor.expect(`*"session/update"*`)
	if answer := <-got; answer != acp.Once {
		t.Errorf("the answer is %v", answer)
	}
	testkit.Must(t, s.editor.out.Close())
	<-s.door.Left()
}

// TestEnd: a host that ends has the editor's requests answered; an editor that ends has the host's input ended.
func TestEnd(t *testing.T) {
	t.Parallel()
	s := connect(t, nil)
	s.session()
	s.editor.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}`)
	s.host.expect(`*session/prompt*`)
	_, err := io.WriteString(s.host.out, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"half`)
	testkit.Must(t, errors.Join(err, s.host.out.Close()))
	s.editor.expect(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"fake has ended"}}`)
	if _, err := s.editor.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}

	s = connect(t, nil)
	s.editor.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}`)
	testkit.Must(t, s.editor.out.Close())
	s.host.expect(`*session/prompt*`)
	if _, err := s.host.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the editor's end: %v", err)
	}
	<-s.door.Left()
	s.host.send(`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`) // it may still say so
	s.editor.expect(`*end_turn*`)
}

// FuzzHost: whatever a host writes, an editor reads nothing but updates and answers to what it has asked.
func FuzzHost(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{}}`))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"a\":[\"\u2028\",\r1]}}\n" + fmt.Sprintf(asks, 1, "switch_mode")))
	f.Add([]byte(`{"jsonrpc":"2.0","id":2,"result":{"authMethods":[{}]}}` + "\r\n[]\n{}"))
	f.Fuzz(func(t *testing.T, written []byte) {
		toEditor := new(strings.Builder)
		left, editor := io.Pipe()
		defer editor.Close()
		hostIn, toHost := io.Pipe()
		fromHost, hostOut := io.Pipe()
		d := acp.New(acp.Options{
			Host: "fake", Reaches: func(string) error { return nil }, Note: func(string, ...any) {},
			Decide: func(context.Context, *acp.Use) (bool, string) { return false, "no" },
		})
		go func() {
			_, _ = io.WriteString(editor, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}`+"\n")
			in := bufio.NewReader(hostIn)
			_, _ = in.ReadString('\n')
			go func() { _, _ = io.Copy(io.Discard, in) }()
			_, _ = hostOut.Write(written)
			_ = hostOut.Close()
		}()
		testkit.Must(t, d.Serve(t.Context(), left, toEditor, fromHost, toHost))
		for line := range strings.Lines(toEditor.String()) {
			var m struct {
				ID     any
				Method string
				Result struct{ AuthMethods []any }
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\n\u2028\u2029\u0085") {
				t.Errorf("the editor reads %q: %v", line, err)
			}
			if m.Method != "" && (m.Method != "session/update" || m.ID != nil) || m.Method == "" && m.ID != 2.0 || len(m.Result.AuthMethods) > 0 {
				t.Errorf("the editor reads %s", line)
			}
		}
	})
}
