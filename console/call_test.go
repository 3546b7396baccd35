package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

// TestCalls checks that the page makes the calls of the table as the operator, gets the kernel's errors, and cannot replace a grant.
func TestCalls(t *testing.T) {
	t.Parallel()
	s := serve(t)
	token := s.login(t)
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"worker","capabilities":{"allowed_syscalls":["Memory.Get"]}}`)
	for _, c := range []struct {
		what   string
		status int
		says   string
	}{
		{`Capability.Grant {"pid":1,"allowed_syscalls":["Memory.Set"],"mode":"add"}`, 200, `"allowed_syscalls":["Memory.Get","Memory.Set"]`},
		{`Capability.Grant {"pid":1,"allowed_syscalls":["Memory.Set"]}`, 422, "only add"},
		{`Capability.Grant {"pid":1,"allowed_syscalls":["Memory.Set"],"mode":"replace"}`, 422, "only add"},
		{`Capability.Grant {"pid":1,"allowed_syscalls":["Memory.Set"],"mode":"add","mode":"replace"}`, 400, "strict JSON"},
		{`Capability.Grant {"pid":9,"allowed_syscalls":["Memory.Set"],"mode":"add"}`, 404, "process.not_found"},
		{`Capability.Get {"pid":1}`, 200, `"Memory.Set"`},
		{`Process.Pause {"target_pid":1}`, 200, `"processes":1`},
		{`Process.Resume {"target_pid":1}`, 200, `"processes":1`},
		{`Audit.Verify {}`, 200, `"ok":true`},
		{`Audit.Verify {`, 400, "strict JSON"},
		{`Budget.Show {}`, 200, `"budgets"`},
		{`Approval.Decide {"id":"q-9","decision":"approve"}`, 404, "approval.not_found"},
		{`Memory.Get {"key":"notes/1"}`, 403, "console.call"},
		{`Crypto.Open {"sealed":"pwenc:v1:x"}`, 403, "console.call"},
		{`Syscall.Shutdown {}`, 403, "console.call"},
		{`Nothing.There {}`, 403, "console.call"},
		{`Syscall.Terminate {"target_pid":1}`, 200, `"target_pid":1`},
		{`Capability.Grant {"pid":1,"allowed_syscalls":["Memory.Set"],"mode":"add"}`, 409, "process.is_ended"},
	} {
		if a := s.ask(t, "POST /api/call/"+c.what, token); a.status != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: %d %s", c.what, a.status, a.body)
		}
	}
}

// TestEvents checks that the stream has each entry once and in order, from the requested one on, and ends with its session.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := serve(t)
	token := s.login(t)
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"worker","capabilities":{"allowed_syscalls":["Memory.Set"]}}`)
	for i := range 50 {
		s.do(t, "Memory.Set", `{"pid":1,"key":"notes/%d","value":%d}`, i, i)
	}
	since := 0
	for range 3 { // close the stream, and resume after its last entry
		next := stream(t, s, token, since)
		for range 12 {
			row := next()
			if since != 0 && row.Seq != since+1 {
				t.Fatalf("after entry %d comes %d", since, row.Seq)
			}
			since = row.Seq
		}
	}
	next := stream(t, s, token, 0)
	for row := next(); row.Type != "Memory.Set"; row = next() {
	}
	s.ask(t, "POST /api/logout {}", token)
	for next() != nil {
	}
	for _, since := range []string{"0", "-1", "x", "9007199254740993"} {
		if a := s.ask(t, "GET /api/events?since="+since, s.login(t)); a.status != http.StatusUnprocessableEntity {
			t.Errorf("since %s: %d %s", since, a.status, a.body)
		}
	}
}

// event is a line of a stream.
type event struct {
	Seq            int
	Type, Who      string
	Asked, Outcome string
	Status         string
	Own            bool
	Grant          json.RawMessage
}

// stream opens a stream that begins after an entry; 0: at the default. next waits for a row, and returns nil at the end.
func stream(t *testing.T, s *served, token string, after int) (next func() *event) {
	t.Helper()
	path := "api/events"
	if after != 0 {
		path += "?since=" + string(must(t, after+1))
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	t.Cleanup(cancel)
	r := testkit.Value(http.NewRequestWithContext(ctx, "GET", s.URL()+path, nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	resp := testkit.Value(s.web.Do(r))(t)
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("stream: %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() *event {
		for lines.Scan() {
			if len(lines.Bytes()) == 0 {
				continue
			}
			row := new(event)
			testkit.Must(t, json.Unmarshal(lines.Bytes(), row))
			return row
		}
		return nil
	}
}

func must(t *testing.T, v any) []byte { return testkit.Value(json.Marshal(v))(t) }

// TestViews checks the processes, the log and the entry that the page gets: they use the texts of view, and text of agents is escaped.
func TestViews(t *testing.T) {
	t.Parallel()
	s := serve(t)
	token := s.login(t)
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"evil","intent":"<b>","capabilities":{"allowed_syscalls":["Memory.Get"]}}`)
	s.do(t, "Syscall.Spawn", `{"pid":0,"child_agent_id":"other"}`)
	if _, err := s.kernel.Call(testkit.Context(t), schema.KindCommand, "Memory.Set", []byte(`{"pid":1,"key":"notes/1","value":"<script>"}`)); err == nil {
		t.Fatal("a call without a grant succeeds")
	}
	if a := s.ask(t, "GET /api/processes", token); !strings.Contains(a.body, `"name":"evil"`) || !strings.Contains(a.body, `"intent":"<b>"`) {
		t.Errorf("processes: %d %s", a.status, a.body)
	}
	s.do(t, "Memory.Set", `{"key":"notes/2","value":"turned \u202e around"}`)
	a := s.ask(t, "GET /api/log?key=notes/2&type=Memory.Set", token)
	var log struct{ Rows []event }
	if json.Unmarshal([]byte(a.body), &log) != nil || len(log.Rows) != 1 {
		t.Fatalf("the log of a key: %d %s", a.status, a.body)
	}
	if a := s.ask(t, "GET /api/entry/"+string(must(t, log.Rows[0].Seq)), token); !strings.Contains(a.body, `turned \\u202e around`) {
		t.Errorf("a value that turns text around: %d %s", a.status, a.body)
	}
	a = s.ask(t, "GET /api/log?denied=1&pid=1", token)
	log.Rows = nil
	if json.Unmarshal([]byte(a.body), &log) != nil || len(log.Rows) != 1 {
		t.Fatalf("denials: %d %s", a.status, a.body)
	}
	row := log.Rows[0]
	if row.Status != "denied" || string(row.Grant) != `{"pid":1,"allowed_syscalls":["Memory.Set"],"mode":"add"}` || !strings.Contains(row.Asked, "notes/1") {
		t.Errorf("the denial: %+v, %s", row, row.Grant)
	}
	a = s.ask(t, "GET /api/entry/"+string(must(t, row.Seq)), token)
	if a.status != 200 || !strings.Contains(a.body, `\"key\":\"notes/1\"`) || !strings.Contains(a.body, `"effects":[]`) {
		t.Errorf("its detail: %d %s", a.status, a.body)
	}
	for path, want := range map[string]int{
		"/api/entry/999999": 404, "/api/entry/0": 422, "/api/entry/x": 422, "/api/log?limit=x": 422, "/api/log?nothing=1": 422, "/api/log?pid=-1": 422,
		"/api/log?limit=100000&own=": 422, "/api/approvals": 200, "/api/graph": 422, "/api/graph?correlation=none": 200, "/api/search?query=notes": 200, "/api/search": 422, "/api/search?query=%22": 422,
	} {
		if a := s.ask(t, "GET "+path, token); a.status != want {
			t.Errorf("%s: %d %s, want %d", path, a.status, a.body, want)
		}
	}
}

// TestKernelComesBack checks that calls fail with console.away while the kernel is down, and succeed after its restart.
func TestKernelComesBack(t *testing.T) {
	t.Parallel()
	place := testkit.NewPlace(t, "")
	stop := testkernel.Start(t, testkernel.Settings(place))
	s := serveOf(t, func(ctx context.Context) (*client.Client, error) {
		return client.Dial(ctx, client.Options{RuntimeDir: place.RuntimeDir()})
	})
	token := s.login(t)
	if a := s.ask(t, "GET /api/processes", token); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	stop()
	if a := s.ask(t, "GET /api/processes", token); a.status != http.StatusServiceUnavailable || a.errorID() != "console.away" {
		t.Errorf("without a kernel: %d %s", a.status, a.body)
	}
	testkernel.Start(t, testkernel.Settings(place))
	if a := s.ask(t, "GET /api/processes", token); a.status != http.StatusOK {
		t.Errorf("with the next one: %d %s", a.status, a.body)
	}
}
