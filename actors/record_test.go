package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestRecord shows what the journal stores of a call, and that the answer names the entry that proves it.
func TestRecord(t *testing.T) {
	t.Parallel()
	event := strings.NewReplacer(`"kind":"command","type":"Memory.Set","data"`, `"type":"command","name":"Memory.Set","payload"`)
	tests := []struct {
		name    string
		frame   string
		outcome string
	}{
		{name: "command", frame: set("a", "x"), outcome: `{"kind":"reply","data":1}`},
		{name: "legacy command", frame: event.Replace(set("a", "x")), outcome: `{"kind":"reply","data":1}`},
		{name: "query", frame: get("a"), outcome: `{"kind":"reply"}`},
		{name: "refused command", frame: set("a", "409"), outcome: `{"kind":"error","data":{"code":409,"message":"refused after 0"}}`},
		{name: "denied query", frame: query("a", "Audit.Metrics", "{}"), outcome: `{"kind":"error","data":{"code":403,"message":"pid 7 may not call Audit.Metrics: allow it too with \"pwos cap grant 7 --add Audit.Metrics\""},"error":"capability.denied","details":{"pid":"7"}}`},
		{name: "failed command", frame: set("a", "fail"), outcome: `{"kind":"error","data":{"code":500,"message":"internal error: see the kernel's log"},"error":"kernel.internal"}`},
		{
			name:    "numbers and strings as they were written",
			frame:   command("a", "Memory.Set", `{"key":"x","value":[1.50,1e3,"\u00e9"]}`),
			outcome: `{"kind":"reply","data":1}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				states := newRecorders()
				states[schema.Memory].decide = func(call *kernel.Call, applied []string) (kernel.Result, bool, error) {
					time.Sleep(41*time.Microsecond + time.Nanosecond) // it is rounded up
					if word(call) == "fail" {
						return kernel.Result{}, true, fmt.Errorf("%s", internals)
					}
					return refusing(call, applied)
				}
				s := startWith(t, states.domains())
				s.kernel.Reach(3)
				s.tokens.held = map[int64]*kernel.Token{7: allowed(7, "Memory.*")}
				c := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
				before := time.Now().UnixMilli()
				c.sendRaw(test.frame + "\n")
				line, err := c.lines.Next()
				if err != nil {
					t.Fatalf("read answer: %v", err)
				}
				e := s.entries()[0]
				if e.request != test.frame {
					t.Errorf("request:\n got %s\nwant %s", e.request, test.frame)
				}
				if e.Outcome != test.outcome {
					t.Errorf("outcome:\n got %s\nwant %s", e.Outcome, test.outcome)
				}
				got := fmt.Sprint(e.Seq, e.PID, e.Tick, e.origin, e.conn, e.time)
				if want := fmt.Sprint(1, 7, 3, "https://test.local/", "c-1", before); got != want {
					t.Errorf("seq, pid, tick, origin, conn and time are %s, want %s", got, want)
				}
				if strings.Contains(test.frame, "Memory") && e.latency != 42 {
					t.Errorf("latency %d µs, want 42", e.latency)
				}
				proof := fmt.Sprintf(`"kernel":{"seq":1,"pid":7,"tick":3,"latency_us":%d}`, e.latency)
				if !strings.Contains(string(line), proof) {
					t.Errorf("answer %s: no %s", line, proof)
				}
			})
		})
	}
}

// TestNoRecord shows that a frame that never became a call has neither an entry nor a proof.
func TestNoRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newRecorders().domains())
		c := s.connect()
		c.send("no JSON", query("a", "Nobody.Knows", "{}"), command("b", "Memory.Set", "{}"), command("c", "Ipc.Open", `{"pids":[1]}`))
		synctest.Wait()
		out := string(c.link.out.drain())
		if n := strings.Count(out, `"kind":"error"`); n != 4 || strings.Contains(out, `"kernel":`) {
			t.Errorf("%d errors, want 4 without a proof:\n%s", n, out)
		}
		if entries := s.entries(); len(entries) != 0 {
			t.Errorf("journal: %v", entries)
		}
	})
}

type vaultData struct {
	Label  string `json:"label" keep:"always"`
	Phrase string `json:"phrase" keep:"never"`
}

type vaultLabel struct {
	Label string `json:"label" keep:"always"`
}

// TestSecretsStayOut shows that data that the type of a syscall's data or answer withholds reaches its domain and its
// caller, but neither the journal nor the log. A command with such an answer has no idempotency key, since the journal
// could not repeat the answer.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	vault := schema.Syscall{Type: "Vault.Open", Domain: schema.Memory}
	const open, withheld = `{"label":"l","phrase":"` + secret + `"}`, `{"label":"l","phrase":"[redacted]"}`
	for name, tt := range map[string]struct {
		row                             *schema.Syscall
		data, answer, recorded, outcome string
	}{
		"a query's data":     {schema.NewQuery[vaultData, schema.Value](vault).Syscall, open, open, withheld, `{"kind":"reply"}`},
		"a command's data":   {schema.NewCommand[vaultData, vaultLabel](vault).Syscall, open, `{"label":"l"}`, withheld, `{"kind":"reply","data":{"label":"l"}}`},
		"a command's answer": {schema.NewCommand[vaultLabel, vaultData](vault).Syscall, `{"label":"l"}`, open, `{"label":"l"}`, `{"kind":"reply","data":` + withheld + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				states := newRecorders()
				ran := 0
				states[schema.Memory].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
					ran++
					if in, ok := call.Input.(*vaultData); ok && in.Phrase != secret {
						t.Errorf("the domain got %q", in.Phrase)
					}
					return kernel.Result{Data: []byte(tt.answer)}, true, nil
				}
				s := startWith(t, states.domains())
				l := newLink(schema.OsMessage, schema.MaxLine, unbounded)
				feed := s.kernel.NewFeed(l, "feed")
				line := keyed("k", frame(schema.OsMessage, tt.row.Kind, tt.row.Type, tt.data, "a"))
				for range 2 {
					m, err := schema.Decode([]byte(line), schema.OsMessage)
					if err != nil {
						t.Fatal(err)
					}
					input, err := tt.row.Input().Decode(m.Data)
					if err != nil {
						t.Fatal(err)
					}
					feed.Send(schema.Memory, kernel.Call{Request: kernel.Request{Caller: kernel.Caller{Conn: "feed"}, Message: m, Syscall: tt.row, Input: input}})
				}
				feed.End()
				synctest.Wait()
				out := string(l.out.drain())
				if n := strings.Count(out, tt.answer); n != 2 {
					t.Errorf("the caller got %d answers: %s", n, out)
				}
				if ran != 2 {
					t.Errorf("the call ran %d times, want 2: it has no key", ran)
				}
				for _, e := range s.entries() {
					want := keyed("k", frame(schema.OsMessage, tt.row.Kind, tt.row.Type, tt.recorded, "a"))
					if diff := cmp.Diff([]string{want, tt.outcome}, []string{e.request, e.Outcome}); diff != "" {
						t.Errorf("entry (-want +got):\n%s", diff)
					}
				}
				for path, data := range s.disk.Image() {
					if strings.Contains(string(data), secret) {
						t.Errorf("%s holds the secret: %s", path, data)
					}
				}
				if strings.Contains(s.log.String(), secret) {
					t.Errorf("the log holds the secret:\n%s", s.log.String())
				}
			})
		})
	}
}
