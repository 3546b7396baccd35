package hosts_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/internal/testkit"
)

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, testkit.Patience)
		}
	}
}

// exists reports whether the project has a file.
func (p *place) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.Path("project"), name))
	return err == nil
}

// idle waits until no agent is left, and no process of one.
func (p *place) idle() {
	p.t.Helper()
	await(p.t, "no agent is left", func() bool { return p.run("pwos", "ps") == "" })
}

// killEditor starts a server in an editor, and kills the editor.
func (p *place) killEditor(first string, command ...string) {
	p.t.Helper()
	self, err := os.Executable()
	testkit.Must(p.t, err)
	cmd := p.command(p.t.Context(), self, append([]string{"t-editor", first}, command...)...)
	cmd.Path = self
	out, err := cmd.StdoutPipe()
	testkit.Must(p.t, errors.Join(err, cmd.Start()))
	var answered bool
	var pid int
	_, err = fmt.Fscan(out, &answered, &pid)
	testkit.Must(p.t, errors.Join(err, cmd.Process.Kill()))
	_ = cmd.Wait() // it was killed
	if !answered {
		p.t.Error("the server did not answer the editor")
	}
	p.idle()
	await(p.t, "pwos run ends", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// TestWrappedServer: an MCP server behind pwos run answers, with long lines, is cancelled, and ends at the end of its input
// and with its editor.
func TestWrappedServer(t *testing.T) {
	t.Parallel()
	p := newPlaceAt(t, "")
	self, err := os.Executable()
	testkit.Must(t, err)
	wrapped := []string{"run", "--name", "wrapped", "--", self, "t-server"}
	cmd := p.command(t.Context(), "pwos", wrapped...)
	var said strings.Builder
	cmd.Stderr = &said
	session, err := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	testkit.Must(t, err)
	tools, err := session.ListTools(t.Context(), nil)
	testkit.Must(t, err)
	if len(tools.Tools) != 2 {
		t.Errorf("%d tools", len(tools.Tools))
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "env"})
	testkit.Must(t, err)
	if text := result.Content[0].(*mcp.TextContent).Text; text != strings.Repeat("wrapped", 100_000) {
		t.Errorf("it answers %d bytes, %.20q", len(text), text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "slow"})
		ended <- err
	}()
	await(t, "the tool runs", func() bool { return p.exists("started") })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call returns %v", err)
	}
	await(t, "the tool is cancelled", func() bool { return p.exists("cancelled") })
	testkit.Must(t, session.Close())
	if status := cmd.ProcessState; status.ExitCode() != 0 || said.Len() > 0 {
		t.Errorf("it ended with %v: %s", status, said.String())
	}
	p.idle()

	p.killEditor(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, append([]string{p.pwos}, wrapped...)...)
}

// acp is a client of the Agent Client Protocol. It permits everything, unless choose returns the option of a request; "" leaves it open.
type acp struct {
	t      *testing.T
	in     io.WriteCloser
	out    *bufio.Reader
	n      int
	choose func(request object) string
	asked  []object // requests of the agent
}

func (c *acp) send(message object) {
	c.t.Helper()
	message["jsonrpc"] = "2.0"
	testkit.Must(c.t, json.NewEncoder(c.in).Encode(message))
}

// request sends a request, and returns the function that waits for its result.
func (c *acp) request(method string, params object) func() object {
	c.t.Helper()
	c.n++
	id := float64(c.n)
	c.send(object{"id": id, "method": method, "params": params})
	return func() object {
		c.t.Helper()
		for {
			line, err := c.out.ReadBytes('\n')
			testkit.Must(c.t, err)
			var m object
			if err := json.Unmarshal(line, &m); err != nil {
				c.t.Fatalf("%s: got %q", method, line)
			}
			switch {
			case m["method"] == "session/request_permission":
				c.asked = append(c.asked, m)
				option := list(m["params"].(object)["options"])[0].(object)["optionId"]
				if c.choose != nil {
					option = c.choose(m)
				}
				if option != "" {
					c.send(object{"id": m["id"], "result": object{"outcome": object{"outcome": "selected", "optionId": option}}})
				}
			case m["method"] != nil && m["id"] != nil:
				c.asked = append(c.asked, m)
			case m["id"] == id && m["method"] == nil:
				result, ok := m["result"].(object)
				if !ok {
					c.t.Fatalf("%s: %v", method, m["error"])
				}
				return result
			}
		}
	}
}

// TestWrappedACP: an ACP agent behind pwos run takes a prompt, is cancelled, and ends at the end of its input and with its
// editor.
func TestWrappedACP(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if _, err := os.Stat(filepath.Join(p.bin, "claude-agent-acp")); err != nil {
		t.Skip(err)
	}
	m := newModel(t, step{"Bash", object{"command": "echo made >made", "description": "x"}, nil},
		step{"Bash", object{"command": "touch begun; sleep 1000", "description": "x"}, nil})
	p.configure("")
	at, err := url.Parse(m.url)
	testkit.Must(t, err)
	wrapped := []string{"run", "--localhost", at.Port(), "--env", "ANTHROPIC_API_KEY", "--env", "ANTHROPIC_BASE_URL=" + m.url, "--env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "--", "claude-agent-acp"}
	cmd := p.command(t.Context(), "pwos", wrapped...)
	var said strings.Builder
	cmd.Stderr = &said
	c := &acp{t: t}
	c.in, err = cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	c.out = bufio.NewReader(out)
	testkit.Must(t, cmd.Start())
	if got := c.request("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}})(); got["protocolVersion"] != 1.0 {
		t.Errorf("initialize: %v", got)
	}
	session := c.request("session/new", object{"cwd": p.Path("project"), "mcpServers": []any{}})()["sessionId"]
	prompt := func() func() object {
		return c.request("session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": "go"}}})
	}
	waits := prompt()
	await(t, "the tool runs", func() bool { return p.exists("made") })
	go func() {
		for !p.exists("begun") && t.Context().Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		_ = json.NewEncoder(c.in).Encode(object{"jsonrpc": "2.0", "method": "session/cancel", "params": object{"sessionId": session}}) // else the prompt ends otherwise
	}()
	if got := waits(); got["stopReason"] != "cancelled" {
		t.Errorf("the cancelled prompt: %v", got)
	}
	testkit.Must(t, c.in.Close())
	_, err = io.Copy(io.Discard, c.out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		t.Errorf("it ended with %v: %s", err, said.String())
	}
	p.idle()

	p.killEditor(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`, append([]string{p.pwos}, wrapped...)...)
}
