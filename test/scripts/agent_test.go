package scripts_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// openSSH skips a test if OpenSSH's programs are missing.
func openSSH(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s", name)
		}
	}
}

// tool runs a program here, which must succeed, and returns its output.
func (p place) tool(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = append(p.env(), env...), p.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// makeKey creates a key here with ssh-keygen, and returns the path of the private one.
func (p place) makeKey(t *testing.T, name, passphrase string, kind ...string) string {
	t.Helper()
	path := p.Path(name)
	p.tool(t, nil, "ssh-keygen", append([]string{"-q", "-N", passphrase, "-f", path}, kind...)...)
	return path
}

// authorize admits the keys with these private files.
func (p place) authorize(t *testing.T, keys ...string) {
	t.Helper()
	var lines []byte
	for _, key := range keys {
		line, err := os.ReadFile(key + ".pub")
		testkit.Must(t, err)
		lines = append(lines, line...)
	}
	dir := filepath.Join(p.Dir, "home", ".config", "pwos")
	testkit.Must(t, os.MkdirAll(dir, 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "authorized_keys"), lines, 0o600))
}

// startAgent runs a real ssh-agent here, until the test ends, and returns the environment that names it.
func (p place) startAgent(t *testing.T) []string {
	t.Helper()
	socket := p.Path("agent.sock")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	cmd.Env = p.env()
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for limit := time.Now().Add(testkit.Patience); ; <-time.After(time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			testkit.Must(t, conn.Close())
			return []string{"SSH_AUTH_SOCK=" + socket}
		}
		if time.Now().After(limit) {
			t.Fatal("ssh-agent does not listen")
		}
	}
}

// pwosWith runs pwos here with additional variables, and returns its output and exit status.
func (p place) pwosWith(t *testing.T, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, says bytes.Buffer
	cmd := p.command(t.Context(), args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), says.String(), cmd.ProcessState.ExitCode()
}

// Each accepted type of key can log in from a file and through OpenSSH's agent; others are not offered.
func TestEveryKeyType(t *testing.T) {
	t.Parallel()
	openSSH(t, "ssh-keygen", "ssh-agent", "ssh-add")
	p := settle(t)
	kinds := map[string][]string{
		"ed25519": {"-t", "ed25519"},
		"p256":    {"-t", "ecdsa", "-b", "256"},
		"p384":    {"-t", "ecdsa", "-b", "384"},
		"rsa":     {"-t", "rsa", "-b", "3072"},
	}
	keys := map[string]string{}
	var files []string
	for name, kind := range kinds {
		keys[name] = p.makeKey(t, name, "", kind...)
		files = append(files, keys[name])
	}
	weak := []string{p.makeKey(t, "p521", "", "-t", "ecdsa", "-b", "521"), p.makeKey(t, "rsa2048", "", "-t", "rsa", "-b", "2048")}
	p.authorize(t, append(files, weak...)...)
	for name, path := range keys {
		out, says, status := p.pwosWith(t, nil, "auth", "status", "--no-spawn", "--identity", path)
		if status == 6 { // the first one
			p.pwosWith(t, nil, "call", "Syscall.Echo", "message=up", "--identity", path)
			out, says, status = p.pwosWith(t, nil, "auth", "status", "--identity", path)
		}
		if status != 0 || !strings.Contains(out, `"as":"operator"`) {
			t.Errorf("%s from its file: %d, %s%s", name, status, out, says)
		}
	}
	for _, path := range weak {
		if _, says, status := p.pwosWith(t, nil, "call", "Syscall.Echo", "message=x", "--identity", path); status != 3 || !strings.Contains(says, "rsa of 3072 bits and more") {
			t.Errorf("%s: %d, %s", path, status, says)
		}
	}

	agent := p.startAgent(t)
	p.tool(t, agent, "ssh-add", append([]string{"-q"}, append(weak, files...)...)...)
	for _, path := range append(files, weak...) {
		testkit.Must(t, os.Rename(path, path+".hidden"))
	}
	for name, path := range keys {
		out, says, status := p.pwosWith(t, agent, "auth", "status", "--identity", path+".pub")
		if status != 0 || !strings.Contains(out, `"from":"ssh-agent"`) {
			t.Errorf("%s through the agent: %d, %s%s", name, status, out, says)
		}
	}
	// Also without --identity, although the agent has other, unusable keys.
	if out, says, status := p.pwosWith(t, agent, "call", "Syscall.Echo", "message=agent"); status != 0 || out != `{"echo":"agent"}`+"\n" {
		t.Errorf("any key of the agent: %d, %s%s", status, out, says)
	}

	// A removed key is not offered.
	out, says, status := p.pwosWith(t, []string{"SSH_AUTH_SOCK=" + p.Path("none")}, "call", "Syscall.Echo", "message=x")
	if status != 3 || !strings.Contains(says, "there is no key to sign with") {
		t.Errorf("no agent: %d, %s%s", status, out, says)
	}
	p.pwosWith(t, agent, "shutdown")
}

// An agent that does not answer, disconnects or sends garbage delays a login only briefly, and is named.
func TestBadAgents(t *testing.T) {
	t.Parallel()
	openSSH(t, "ssh-keygen")
	p := settle(t)
	key := p.makeKey(t, "key", "", "-t", "ed25519")
	p.authorize(t, key)
	if _, says, status := p.pwosWith(t, nil, "call", "Syscall.Echo", "message=up", "--identity", key); status != 0 {
		t.Fatal(says)
	}
	for name, handle := range map[string]func(net.Conn){
		"silent":  func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"hung up": func(conn net.Conn) {},
		"babbles": func(conn net.Conn) { _, _ = conn.Write(bytes.Repeat([]byte{0xff}, 1<<16)) },
	} {
		socket := p.Path("bad.sock")
		ln, err := net.Listen("unix", socket)
		testkit.Must(t, err)
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				serving.Go(func() {
					handle(conn)
					_ = conn.Close()
				})
			}
		})
		env := []string{"SSH_AUTH_SOCK=" + socket}
		if _, says, status := p.pwosWith(t, env, "call", "Syscall.Echo", "message=x"); status != 3 || !strings.Contains(says, "agent") {
			t.Errorf("%s: %d, %s", name, status, says)
		}
		// A key file does not need the agent.
		if _, says, status := p.pwosWith(t, env, "call", "Syscall.Echo", "message=x", "--identity", key); status != 0 {
			t.Errorf("%s, beside a key file: %d, %s", name, status, says)
		}
		testkit.Must(t, ln.Close())
		serving.Wait()
	}
	p.pwosWith(t, nil, "shutdown", "--identity", key)
}

// A passphrase is asked for at the terminal although stdin is a pipe, and is not echoed.
func TestPassphraseAtATerminal(t *testing.T) {
	t.Parallel()
	openSSH(t, "ssh-keygen")
	ours, theirs, err := openTerminal()
	if err != nil {
		t.Skipf("no terminal is available: %v", err)
	}
	p := settle(t)
	key := p.makeKey(t, "key", "open sesame", "-t", "ed25519")
	p.authorize(t, key)
	cmd := p.command(t.Context(), "--identity", key)
	cmd.Stdin = strings.NewReader(line(1))
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	testkit.Must(t, cmd.Start())
	testkit.Must(t, theirs.Close())
	var screen bytes.Buffer
	typed := make(chan error, 1)
	go func() {
		var err error
		for asked := 0; ; {
			var text [256]byte
			n, readErr := ours.Read(text[:])
			screen.Write(text[:n])
			if readErr != nil { // no process has the other end open any more
				typed <- err
				return
			}
			if strings.Count(screen.String(), "passphrase of ") > asked {
				answer := []string{"wrong\r", "opem\x7fn sesami\x7fe\r"}[min(asked, 1)]
				asked++
				if _, writeErr := ours.WriteString(answer); writeErr != nil {
					err = writeErr
				}
			}
		}
	}()
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), `"payload":1`) {
		t.Errorf("%v, stdout %s, stderr %s", err, out.String(), says.String())
	}
	testkit.Must(t, errors.Join(<-typed, ours.Close()))
	if text := screen.String(); strings.Contains(text, "sesam") || strings.Contains(text, "wrong") || strings.Count(text, "passphrase of ") != 2 {
		t.Errorf("the terminal showed %q", text)
	}

	// Without a terminal there is no question.
	cmd = p.command(t.Context(), "call", "Syscall.Echo", "message=x", "--identity", key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	text, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(text), "there is no terminal to ask for it at") {
		t.Errorf("%v, %s", err, text)
	}
	testkit.Must(t, p.kill())
}
