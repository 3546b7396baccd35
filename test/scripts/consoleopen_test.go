package scripts_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// browser is a program that records how it was started, with the file that it should open.
const browser = `#!/bin/sh
{ printf '%s\n' "$#" "$1"; ls -l "$1"; cat "$1"; printf '\n'; tr '\0' ' ' </proc/$$/cmdline; tr '\0' ' ' </proc/$$/environ; } >"$HOME/opened.tmp"
mv "$HOME/opened.tmp" "$HOME/opened"
`

// atTerminal is a console whose stdin and stdout are a terminal.
type atTerminal struct {
	cmd   *exec.Cmd
	ours  *os.File
	lines chan string // of its terminal
	read  sync.WaitGroup
}

// startConsole starts pwos console with more directories in PATH.
func startConsole(t *testing.T, p place, path string, args ...string) *atTerminal {
	t.Helper()
	ours, theirs, err := openTerminal()
	testkit.Must(t, err)
	c := &atTerminal{cmd: p.command(t.Context(), append([]string{"console"}, args...)...), ours: ours, lines: make(chan string, 100)}
	c.cmd.Env = append(c.cmd.Env, "PATH="+path)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs, theirs, theirs
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Must(t, c.cmd.Start())
	testkit.Must(t, theirs.Close())
	c.read.Go(func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(ours); lines.Scan(); {
			c.lines <- lines.Text()
		}
	})
	return c
}

// says waits for a line that matches, and returns its first group.
func (c *atTerminal) says(t *testing.T, pattern string) string {
	t.Helper()
	for {
		line := testkit.Receive(t, c.lines, "a line with "+pattern)
		if found := regexp.MustCompile(pattern).FindStringSubmatch(line); found != nil {
			return strings.TrimSpace(found[len(found)-1])
		}
	}
}

// end interrupts the console. Its kernel continues.
func (c *atTerminal) end(t *testing.T) {
	t.Helper()
	testkit.Must(t, c.cmd.Process.Signal(os.Interrupt))
	_ = c.cmd.Wait() // only its effects matter
	c.read.Wait()
	testkit.Must(t, c.ours.Close())
}

var linkOf = regexp.MustCompile(`url=(http://127\.0\.0\.1:[0-9]+)/#([A-Z0-9]+)"`)

// login uses a link, as the page does, and returns the status.
func login(t *testing.T, url, secret string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/login", strings.NewReader(fmt.Sprintf(`{"secret":%q}`, secret)))
	testkit.Must(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", url)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	testkit.Must(t, err)
	testkit.Must(t, resp.Body.Close())
	return resp.StatusCode
}

// TestConsoleOpens shows that --open starts the browser with the file of the link, which only its owner may read, and with
// the link in no argument and no variable; that the file is deleted when the link is used; and that Enter makes another link
// without another browser.
func TestConsoleOpens(t *testing.T) {
	t.Parallel()
	p := settle(t)
	testkit.Must(t, os.MkdirAll(p.Path("home"), 0o700))
	bin := t.TempDir()
	testkit.WriteProgram(t, filepath.Join(bin, "xdg-open"), []byte(browser))
	c := startConsole(t, p, bin+":"+os.Getenv(binDirEnv)+":"+os.Getenv("PATH"), "--open")
	file := c.says(t, `^open +(\S+\.html)`)
	url := c.says(t, `^serving +(http://\S+)`)
	testkit.Eventually(t, "a browser", func() bool { _, err := os.Stat(p.Path("home/opened")); return err == nil })
	said := testkit.ReadFile(t, p.Path("home/opened"))
	told := strings.SplitN(said, "\n", 4)
	link := linkOf.FindStringSubmatch(told[3])
	if told[0] != "1" || told[1] != file || !strings.HasPrefix(told[2], "-rw-------") || link == nil || link[1] != strings.TrimSuffix(url, "/") {
		t.Fatalf("the browser got %s; want the file %s alone, of mode 0600, with a link to %s", said, file, url)
	}
	if _, rest, _ := strings.Cut(told[3], "</p>"); strings.Contains(rest, link[2]) {
		t.Errorf("the link is in an argument or a variable of the browser: %s", rest)
	}
	testkit.Must(t, os.Remove(p.Path("home/opened")))
	if status := login(t, link[1], link[2]); status != http.StatusOK {
		t.Errorf("the link: %d", status)
	}
	c.says(t, `the link is used up; Enter makes another one`)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of a link that is used up: %v", err)
	}
	_, err := c.ours.WriteString("\n")
	testkit.Must(t, err)
	if again := c.says(t, `^open +(\S+\.html)`); again != file {
		t.Errorf("the next link is in %s, want %s", again, file)
	}
	c.says(t, `^serving`)
	next := linkOf.FindStringSubmatch(testkit.ReadFile(t, file))
	info, err := os.Stat(file)
	testkit.Must(t, err)
	if next == nil || next[2] == link[2] || info.Mode() != 0o600 {
		t.Fatalf("the next link is %v, in a file of mode %v", next, info.Mode())
	}
	if status := login(t, link[1], link[2]); status != http.StatusUnauthorized {
		t.Errorf("the first link again: %d", status)
	}
	if status := login(t, next[1], next[2]); status != http.StatusOK {
		t.Errorf("the next link: %d", status)
	}
	c.says(t, `the link is used up`)
	if _, err := os.Stat(p.Path("home/opened")); !os.IsNotExist(err) {
		t.Error("Enter has started another browser")
	}
	c.end(t)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file was not removed: %v", err)
	}
	p.pwos(t, "shutdown")
}

// TestConsoleWithoutBrowser: if no browser can be started the console says so, and serves its page.
func TestConsoleWithoutBrowser(t *testing.T) {
	t.Parallel()
	p := settle(t)
	c := startConsole(t, p, os.Getenv(binDirEnv), "--open")
	file := c.says(t, `^open +(\S+\.html)`)
	c.says(t, `no browser was started: open that file yourself: .*xdg-open`)
	link := linkOf.FindStringSubmatch(testkit.ReadFile(t, file))
	if status := login(t, link[1], link[2]); status != http.StatusOK {
		t.Errorf("the link: %d", status)
	}
	c.end(t)
	p.pwos(t, "shutdown")
}
