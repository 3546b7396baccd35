package oauth_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// place is a testkit.Place of a user, with the servers that the kernel may reach.
type place struct {
	*world
	*testkit.Place
}

// newPlace creates a place whose kernel may reach these addresses.
func newPlace(t *testing.T, allow string) *place {
	t.Helper()
	p := &place{newWorld(t), testkit.NewPlace(t, "")}
	testkit.WriteFile(t, p.Path("ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.mcp.Certificate().Raw})))
	config := fmt.Sprintf("[http]\nallow = [%q]\nca_file = %q\n", allow, p.Path("ca.pem"))
	testkit.WriteFile(t, p.Path("config.toml"), config)
	t.Cleanup(func() { p.run("", 0, "shutdown") })
	return p
}

func (p *place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, testkit.Program(p.t, "pwos"), append([]string{"--timeout=" + testkit.Patience.String()}, args...)...)
	cmd.Env = []string{
		"HOME=" + p.Dir, "PATH=" + os.Getenv("PATH"), "PWOS_CONFIG=" + p.Path("config.toml"), "PWOS_RUNTIME_DIR=" + p.RuntimeDir(), "PWOS_STATE_DIR=" + p.StateDir(),
	}
	return cmd
}

// run runs pwos, which must exit with a status and print a text that matches. It returns the output.
func (p *place) run(want string, status int, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := cmd.ProcessState.ExitCode(); exit != status || !regexp.MustCompile(want).Match(out.Bytes()) {
		p.t.Errorf("pwos %s: %v, want %d and %s\n%s", strings.Join(args, " "), err, status, want, out.String())
	}
	return out.String()
}

// call calls the tool.
func (p *place) call(want string, status int, args ...string) {
	p.t.Helper()
	p.run(want, status, append([]string{"call", "Syscall.Call", "--data", `{"syscall":"os/mcp/docs/say"}`}, args...)...)
}

// login runs pwos mcp login, and acts as the person who logs in.
func (p *place) login(args ...string) string {
	p.t.Helper()
	cmd := p.command(testkit.Context(p.t), append([]string{"mcp", "login", "docs"}, args...)...)
	said, err := cmd.StderrPipe()
	testkit.Must(p.t, err)
	var out bytes.Buffer
	cmd.Stdout = &out
	testkit.Must(p.t, cmd.Start())
	address := regexp.MustCompile(`https://\S+/authorize\?\S+\n`)
	var all []byte
	for buf, followed := make([]byte, 4096), false; ; {
		n, err := said.Read(buf)
		if all = append(all, buf[:n]...); !followed && address.Match(all) {
			followed = true
			testkit.Must(p.t, p.follow(strings.TrimSpace(string(address.Find(all)))))
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		p.t.Fatalf("pwos mcp login: %v\n%s", err, all)
	}
	return out.String()
}

// TestMCPLogin: a server that requires a login is added, logged in at, called, and removed, while its agent never has a
// token.
func TestMCPLogin(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "127.0.0.0/8")
	const needed = `(?s)mcp\.docs: it asks for a login: log in with "pwos mcp login docs"`
	const hi = `"text":"hi"`

	// Before and after a login.
	p.run(needed, 1, "mcp", "add", "docs", "--url", p.address())
	p.run(`"state":"away"`, 0, "mcp", "ls")
	if out := p.login(); !strings.Contains(out, `"tool":"say","change":"new"`) {
		t.Errorf("after the login: %s", out)
	}
	p.call(hi, 0)
	p.run(`"state":"running","tools":1,"changes":0,"server":"https://`, 0, "mcp", "ls")
	p.run("", 0, "spawn", "bob", "--allow", "Memory.Get")
	p.call("pwos cap grant 2 --add Call:mcp/docs/say", 3, "--pid", "2")
	p.run("", 0, "cap", "grant", "2", "--add", "Call:mcp/docs/*")
	p.call(hi, 0, "--pid", "2")
	p.run(`"type":"mcp/docs/say".*"intent":`, 0, "audit", "log", "--pid", "2")
	p.run(`"upstream":"mcp.docs","method":"POST","path":"/mcp"`, 0, "audit", "log", "--pid", "1", "--type", "Net.Request")

	// A refused token is renewed while the call waits; a lost session is started again.
	p.revoke()
	p.call(hi, 0)
	if p.renewals != 1 {
		t.Errorf("the login was renewed %d times", p.renewals)
	}
	p.restart(true)
	p.call("session", 1)
	p.run("^$", 0, "mcp", "diff", "docs")
	p.call(hi, 0)

	// The server stops, and starts again.
	working := p.handler
	p.set(func() {
		p.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	})
	p.mcp.CloseClientConnections()
	p.call("mcp.docs did not answer|is away", 1)
	p.set(func() { p.handler = working })
	p.run("^$", 0, "mcp", "diff", "docs")
	p.call(hi, 0)

	// A missing scope, and an invalid login.
	p.set(func() { p.needs = "write" })
	p.call(`asks for more than its login was made for: log in with .*pwos mcp login docs --scope read --scope write`, 1)
	p.login("--scope", "read", "--scope", "write")
	p.call(hi, 0)
	p.revoke()
	p.set(func() { clear(p.refresh) })
	p.call(`mcp\.docs: its login has ended: log in with "pwos mcp login docs" \(503\)`, 1)
	p.login("--scope", "read", "--scope", "write")
	p.call(hi, 0)

	// A new login during the renewal of another one is kept.
	before := strings.TrimSpace(p.run("", 0, "mem", "get", "vault/mcp/docs"))
	p.login()
	p.revoke()
	p.set(func() { p.during = func() { p.run("", 0, "mem", "set", "vault/mcp/docs", before) } })
	p.call("the renewed login of mcp.docs was not stored: try again", 1)
	p.set(func() { p.during = nil })
	if got := strings.TrimSpace(p.run("", 0, "mem", "get", "vault/mcp/docs")); got != before {
		t.Errorf("the login is %s, was %s", got, before)
	}
	p.login("--scope", "read", "--scope", "write")
	p.call(hi, 0)

	// The login outlives the kernel. Only the server has seen a token.
	p.run("", 0, "shutdown")
	p.run("^$", 0, "mcp", "diff", "docs")
	p.call(hi, 0)
	if found := testkit.FilesWith(t, "CANARY", p.StateDir()); found != nil {
		t.Errorf("%v hold a token", found)
	}
	p.run("vault/mcp/docs", 0, "mem", "ls", "vault/")
	p.run("^$", 0, "mcp", "rm", "docs")
	p.run("not found", 4, "mem", "get", "vault/mcp/docs")
	p.run("there is no MCP server docs", 4, "mcp", "login", "docs")
}

// TestBearer: the kernel also adds a stored token; a server without authentication needs none.
func TestBearer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "127.0.0.0/8")
	p.set(func() { p.access["secret"] = "" })
	sealed := p.run("pwenc", 0, "call", "Crypto.Seal", "plaintext=secret", "key=host")
	value := regexp.MustCompile(`pwenc:v1:[^"]+`).FindString(sealed)
	p.run("", 0, "mem", "set", "vault/docs", value)
	p.run("it asks for a login", 1, "mcp", "add", "none", "--url", p.address())
	p.run(`"tool":"say"`, 0, "mcp", "add", "docs", "--url", p.address(), "--bearer", "vault/docs")
	p.call(`"text":"hi"`, 0)

	// At a terminal a browser is opened, which a variable can name.
	testkit.WriteProgram(t, p.Path("browser"), []byte("#!/bin/sh\nprintf %s \"$1\" > "+p.Path("opened")+".new && mv "+p.Path("opened")+".new "+p.Path("opened")+"\n"))
	cmd := p.command(testkit.Context(t), "mcp", "login", "none")
	cmd.Env = append(cmd.Env, "BROWSER="+p.Path("browser"), "TERM=dumb")
	s := screen.Sit(t, cmd, testkit.Patience)
	address := strings.TrimSpace(s.Expect(`https://\S+/authorize\?\S+\r\n`))
	testkit.Must(t, p.follow(address))
	s.Expect("logged in at none")
	s.Expect("new say")
	if status := s.Status(); status != 0 {
		t.Errorf("at a terminal: exit status %d", status)
	}
	for ctx := testkit.Context(t); ; <-time.After(5 * time.Millisecond) {
		opened, err := os.ReadFile(p.Path("opened"))
		if err == nil && string(opened) == address {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the browser was opened at %s: %v", opened, err)
		}
	}
	p.revoke()
	p.call("refuses the credential: seal another token, and store it as vault/docs", 1)
	p.set(func() { p.open = true })
	p.run("^$", 0, "mcp", "diff", "docs")
	p.run("Key not found: vault/none", 4, "mcp", "login", "none", "--client-id", "x", "--client-secret", "vault/none")
	p.run("has a bearer token, vault/docs", 2, "mcp", "login", "docs")
	p.set(func() { p.metadata = map[string]any{"code_challenge_methods_supported": nil} })
	p.run(`the login at none failed: .*does not implement PKCE`, 1, "mcp", "login", "none")
}

// TestClosedAddress: neither the kernel nor a login accesses addresses that agents may not.
func TestClosedAddress(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "127.0.0.0/32")
	const closed = "is a loopback address, which is closed to agents"
	p.run(closed, 1, "mcp", "add", "docs", "--url", p.address())
	p.run(closed, 1, "mcp", "login", "docs")
	if p.auth != nil {
		t.Error("the server got a request")
	}
}
