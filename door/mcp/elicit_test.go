package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// careful returns a place with a rule that requires an approval for Memory.Set below prod/. A call waits for it for the given time.
func careful(t *testing.T, wait time.Duration) *place {
	t.Helper()
	return newPlaceWith(t, func(cfg *config.Config) {
		dir := filepath.Dir(cfg.RuntimeDir)
		cfg.File, cfg.Approval.Wait = filepath.Join(dir, "config.toml"), config.Duration(wait)
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "policy.cedar"),
			[]byte(`@id("careful") @ask("30m") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key like "prod/*"};`), 0o600))
	})
}

// TestElicit checks that an accept of a trusted host approves the call, and that the call still waits after a decline or cancel.
func TestElicit(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"accept", "decline", "cancel"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			p := careful(t, time.Minute)
			h := connectAnswering(t, p.bridgeTrusting("host", "Memory.*"), func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				if m := req.Params.Message; !strings.Contains(m, "bob") || !strings.Contains(m, "careful") || !strings.Contains(m, `{"key":"prod/x","value":1}`) {
					t.Errorf("asked %s", m)
				}
				if action != "accept" {
					if got := p.operator("Approval.List", `{"state":"waiting"}`); !strings.Contains(got, `"q-1"`) {
						t.Errorf("waiting: %s", got)
					}
					defer time.AfterFunc(0, func() { p.operator("Approval.Decide", `{"id":"q-1","decision":"approve","why":"a person's"}`) })
				}
				return &sdk.ElicitResult{Action: action}, nil
			})
			h.expect("Memory_Set", args{"key": "prod/x", "value": 1}, `{"success":true}`)
			list, why := p.operator("Approval.List", `{}`), "a person's"
			if action == "accept" {
				why = "accepted in host"
			}
			if !strings.Contains(list, `"why":"`+why+`"`) || !strings.Contains(list, `"advisory":true`) {
				t.Errorf("approvals: %s", list)
			}
		})
	}
}

// TestElicitNobody checks that a host that is not trusted, or does not support elicitations, is not asked, and that the result of the call
// has the fix.
func TestElicitNobody(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	accept := func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked.Add(1)
		return &sdk.ElicitResult{Action: "accept"}, nil
	}
	for name, of := range map[string]func(t *testing.T, p *place) *host{
		"no host": func(t *testing.T, p *place) *host { return connectAnswering(t, p.bridge("Memory.*"), accept) },
		"another host": func(t *testing.T, p *place) *host {
			return connectAnswering(t, p.bridgeTrusting("claude-code", "Memory.*"), accept)
		},
		"takes none": func(t *testing.T, p *place) *host { return connect(t, p.bridgeTrusting("host", "Memory.*")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := careful(t, 1500*time.Millisecond)
			of(t, p).refused("Memory_Set", args{"key": "prod/x", "value": 1}, "waits for the approval q-1", `"pwos approve q-1"`, "approval.pending, 425", "was not there to answer in time. Go on with something else")
			if got := p.operator("Approval.List", `{"state":"waiting"}`); !strings.Contains(got, `"q-1"`) || asked.Load() > 0 {
				t.Errorf("asked %d times: %s", asked.Load(), got)
			}
		})
	}
}

// TestElicitOlder checks that a host of an older protocol version gets an elicitation/create request.
func TestElicitOlder(t *testing.T) {
	t.Parallel()
	p := careful(t, time.Minute)
	fromHost, toBridge := io.Pipe()
	fromBridge, toHost := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- errors.Join(p.bridgeTrusting("old", "Memory.*").ServeLines(context.Background(), fromHost, toHost), toHost.Close())
	}()
	lines := bufio.NewScanner(fromBridge)
	send := func(line string) {
		t.Helper()
		_, err := io.WriteString(toBridge, line+"\n")
		testkit.Must(t, err)
	}
	want := func(part string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), part) {
				return
			}
		}
		t.Fatalf("the bridge has not sent %s", part)
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"old","version":"1"}}}`)
	want(`"id":1`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Memory_Set","arguments":{"key":"prod/x","value":1}}}`)
	want(`"method":"elicitation/create"`)
	var asked struct{ ID json.RawMessage }
	testkit.Must(t, json.Unmarshal(lines.Bytes(), &asked))
	send(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"action":"accept","content":{}}}`)
	want(`{\"success\":true}`)
	testkit.Must(t, toBridge.Close())
	for lines.Scan() { // read to the end
	}
	testkit.Must(t, <-served)
}
