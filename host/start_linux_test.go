package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// output runs a command to its end and returns what it has written to its channel.
func output(t testing.TB, h *host.Host, c host.Command) string {
	t.Helper()
	p := start(t, h, c)
	text := all(t, p)
	wait(t, p)
	return text
}

// all ends the program's input and returns its output.
func all(t testing.TB, p *host.Process) string {
	t.Helper()
	testkit.Must(t, p.Conn().CloseWrite())
	testkit.Must(t, p.Conn().SetReadDeadline(time.Now().Add(bound)))
	text, err := io.ReadAll(p.Conn())
	testkit.Must(t, err)
	return string(text)
}

// TestChannel: both kinds of channel carry data in both directions, and each direction ends separately.
func TestChannel(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range map[string]host.Command{"stdio": shell(t, "cat"), "fd3": helper(t, "t-fd3")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Channel = host.Channel(name)
			c.Log.Path = filepath.Join(t.TempDir(), "log")
			p := start(t, h, c)
			// More than any buffer, so that both directions must flow at the same time.
			sent := strings.Repeat("0123456789abcde\n", 1<<16)
			done := make(chan error, 1)
			go func() {
				_, err := io.WriteString(p.Conn(), sent)
				done <- errors.Join(err, p.Conn().CloseWrite(), p.Conn().CloseWrite())
			}()
			got, err := io.ReadAll(p.Conn())
			testkit.Must(t, err)
			testkit.Must(t, <-done)
			if string(got) != sent {
				t.Errorf("%d bytes came back of %d", len(got), len(sent))
			}
			if exit := wait(t, p); exit.Code != 0 {
				t.Errorf("got %v", exit)
			}
			logged, err := os.ReadFile(c.Log.Path)
			testkit.Must(t, err)
			if want := map[string]string{"stdio": "", "fd3": "on stdout\non stderr\n"}[name]; string(logged) != want {
				t.Errorf("log has %q, want %q", logged, want)
			}
			testkit.Must(t, p.Conn().Close())
			if _, err := p.Conn().Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
				t.Errorf("read after close: %v", err)
			}
		})
	}
}

// TestChannelClosed: a program that closes one end is distinguished from one that ended.
func TestChannelClosed(t *testing.T) {
	t.Parallel()
	h := open(t)
	p := start(t, h, shell(t, `exec 0<&-; echo ready; exec 1>&-; while :; do sleep 1000; done`))
	readLine(t, p, "ready")
	if n, err := p.Conn().Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d, %v after the program closed its output", n, err)
	}
	if _, err := p.Conn().Write([]byte("x\n")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v, want EPIPE", err)
	}
	select {
	case <-p.Done():
		t.Error("the program ended when its input was closed")
	default:
	}
}

// TestReopen: standard streams can be opened by name, which needs pipes.
func TestReopen(t *testing.T) {
	t.Parallel()
	if got := output(t, open(t), shell(t, "echo one >/dev/stdout; echo lost >/dev/stderr; cat /dev/stdin")); got != "one\n" {
		t.Errorf("got %q", got)
	}
}

// TestEnvironment: a program has exactly the given environment, and cannot be given another agent's name.
func TestEnvironment(t *testing.T) {
	t.Setenv("PWOS_TEST_SECRET", "operator's")
	t.Setenv("LANG", "C.UTF-8")
	c := shell(t, "env -0; pwd")
	c.Env = map[string]string{"GREETING": "hello world\nline", "HOME": "/elsewhere", "PWOS_PID": "1", "PWOS_FD": "0"}
	c.Argv, c.Net = []string{"/usr/bin/env", "-0"}, host.NetNone
	names := map[string]string{}
	for _, pair := range strings.Split(strings.TrimSuffix(output(t, open(t), c), "\x00"), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		names[name] = value
	}
	want := map[string]string{
		"GREETING": "hello world\nline", "HOME": "/elsewhere", "PWOS_PID": "7", "PWOS_AGENT_ID": "worker", "LANG": "C.UTF-8",
		"PATH": os.Getenv("PATH"), "TMPDIR": filepath.Join(c.Dir, ".tmp"),
	}
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil { // whatever USER is here
		want["USER"], want["LOGNAME"] = u.Username, u.Username
	}
	for name, value := range names {
		if w, ok := want[name]; !ok || value != w {
			t.Errorf("%s=%q, want %q", name, value, w)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

// TestDescriptors: a program has its own descriptors and none of the kernel's, including those that were left inheritable.
func TestDescriptors(t *testing.T) {
	// Not parallel: it creates an inheritable descriptor.
	leak, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0)
	testkit.Must(t, err)
	defer syscall.Close(leak)
	h := open(t)
	for name, want := range map[string][]string{
		"stdio": {"0 pipe", "1 pipe", "2 pipe"}, "fd3": {"0 /dev/null", "1 pipe", "2 pipe", "3 socket"},
	} {
		c := shell(t, `cd /proc/$$/fd; for f in *; do printf '%s ' $f; readlink $f; done`)
		c.Channel = host.Channel(name)
		c.Log.Path = filepath.Join(t.TempDir(), "log")
		said := output(t, h, c)
		if name == "fd3" {
			text, err := os.ReadFile(c.Log.Path)
			testkit.Must(t, err)
			said = string(text)
		}
		var got []string
		for line := range strings.Lines(said) {
			what, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			if strings.Contains(what, " ") { // the directory that the shell itself listed is closed again
				got = append(got, what)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestSession: a program leads a process group in the session that its parent leads, has default signals, and its channel blocks as
// programs expect.
func TestSession(t *testing.T) {
	t.Parallel()
	p := start(t, open(t), shell(t, `read x; cut -d' ' -f1,4,5,6 /proc/$$/stat; grep -E 'Sig(Blk|Ign)|CapEff|CapPrm|NoNewPrivs' /proc/self/status; grep flags /proc/$$/fdinfo/0`))
	got := all(t, p)
	var pid, parent, group, session int
	if _, err := fmt.Sscan(got, &pid, &parent, &group, &session); err != nil || group != pid || session != parent {
		t.Errorf("process %d with parent %d is in group %d of session %d, %v", pid, parent, group, session, err)
	}
	for _, line := range []string{"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !slices.Contains(strings.Split(got, "\n"), line) {
			t.Errorf("got %q, want it to have %q", got, line)
		}
	}
	if strings.Contains(got, "04000") {
		t.Errorf("standard input does not block: %q", got)
	}
}

// TestStartErrors: each failure to start has its class, and leaves nothing.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	h := open(t)
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, []byte(text), mode))
		testkit.Must(t, os.Chmod(path, mode))
		return path
	}
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for name, c := range map[string]struct {
		argv  []string
		class error
		edit  func(*host.Command)
	}{
		"nothing":           {nil, host.ErrCommand, nil},
		"empty name":        {[]string{""}, host.ErrCommand, nil},
		"NUL":               {[]string{"/bin/true", "a\x00b"}, host.ErrCommand, nil},
		"NUL in env":        {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Env = map[string]string{"A": "b\x00"} }},
		"bad env name":      {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Env = map[string]string{"A=B": "b"} }},
		"relative dir":      {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Dir = "x" }},
		"channel":           {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Channel = "tty" }},
		"sandbox":           {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Sandbox = "some" }},
		"negative limit":    {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Limits.CPUSeconds = -1 }},
		"endless limit":     {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Limits.WallSeconds = 1 << 62 }},
		"two files":         {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Limits.OpenFiles = 2 }},
		"log in dir":        {[]string{"true"}, host.ErrCommand, func(c *host.Command) { c.Log.Path = filepath.Join(c.Dir, "log") }},
		"no dir":            {[]string{"true"}, host.ErrNotFound, func(c *host.Command) { c.Dir = filepath.Join(dir, "none") }},
		"dir is a file":     {[]string{"true"}, host.ErrNotFound, func(c *host.Command) { c.Dir = file("plain", "", 0o600) }},
		"not in PATH":       {[]string{"no-such-program"}, host.ErrNotFound, nil},
		"not there":         {[]string{"./no-such-program"}, host.ErrNotFound, nil},
		"a directory":       {[]string{filepath.Join(dir, "folder")}, host.ErrNotExecutable, nil},
		"no permission":     {[]string{file("unset", "#!/bin/sh\n", 0o600)}, host.ErrNotExecutable, nil},
		"no format":         {[]string{file("noise", "\x01\x02\x03", 0o700)}, host.ErrNotExecutable, nil},
		"empty file":        {[]string{file("empty", "", 0o700)}, host.ErrNotExecutable, nil},
		"no interpreter":    {[]string{file("script", "#!/no/such/shell\n", 0o700)}, host.ErrInterpreter, nil},
		"too long":          {[]string{"/bin/true", strings.Repeat("x", 1<<20)}, host.ErrTooLong, nil},
		"too many":          {append([]string{"/bin/true"}, slices.Repeat([]string{strings.Repeat("x", 1<<16)}, 200)...), host.ErrTooLong, nil},
		"PATH of its own":   {[]string{"true"}, host.ErrNotFound, func(c *host.Command) { c.Env = map[string]string{"PATH": "/no/such"} }},
		"shadowed in PATH":  {[]string{"unset"}, host.ErrNotExecutable, func(c *host.Command) { c.Env = map[string]string{"PATH": dir} }},
		"no room for tmp":   {[]string{"true"}, nil, func(c *host.Command) { c.Tmp = filepath.Join(dir, "none", "tmp") }},
		"log cannot be":     {[]string{"true"}, nil, func(c *host.Command) { c.Log.Path = filepath.Join(dir, "folder") }},
		"log through links": {[]string{"true"}, nil, func(c *host.Command) { c.Log.Path = link(t, dir) }},
	} {
		t.Run(name, func(t *testing.T) {
			command := host.Command{Argv: c.argv, Dir: t.TempDir(), PID: 1, ShowProgram: true}
			if c.edit != nil {
				c.edit(&command)
			}
			p, err := h.Start(t.Context(), command)
			var start *host.StartError
			if p != nil || !errors.As(err, &start) || c.class != nil && !errors.Is(err, c.class) {
				t.Fatalf("got %v, %v, want %v", p, err, c.class)
			}
			if strings.ContainsRune(err.Error(), 0) {
				t.Errorf("message has NUL: %q", err)
			}
		})
	}
	if left := h.Processes(); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

// link creates a symbolic link, as an agent would to redirect its log.
func link(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "link")
	testkit.Must(t, os.Symlink(filepath.Join(dir, "target"), path))
	return path
}

// TestStartPlaces: a relative name is relative to the program's own directory, and a huge argument that fits arrives
// complete.
func TestStartPlaces(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := shell(t, "")
	testkit.WriteProgram(t, filepath.Join(c.Dir, "tool"), []byte("#!/bin/sh\nprintf %s \"$#$0$1\""))
	long := strings.Repeat("y", 100<<10)
	c.Argv = []string{"./tool", long, "", "--"}
	if got, want := output(t, h, c), "3./tool"+long; got != want {
		t.Errorf("got %.200q, want %.200q", got, want)
	}
}

// TestTemporaryFilesGo: the directory for temporary files is removed after the last agent that uses it, unless it is not
// empty.
func TestTemporaryFilesGo(t *testing.T) {
	t.Parallel()
	h := open(t)
	dir := t.TempDir()
	there := func() bool { _, err := os.Stat(filepath.Join(dir, ".tmp")); return err == nil }
	long := shell(t, "exec sleep 1000")
	long.Dir = dir
	other, err := h.Start(context.Background(), long)
	testkit.Must(t, err)
	run := func(script string) {
		c := shell(t, script)
		c.Dir = dir
		output(t, h, c)
	}
	run(`test -d "$TMPDIR"`)
	if !there() {
		t.Error("the directory was removed while another agent uses it")
	}
	testkit.Must(t, other.Terminate(context.Background(), 0))
	if there() {
		t.Error("the directory stays after its last agent, although it is empty")
	}
	run(`echo x >"$TMPDIR/kept"`)
	if !there() {
		t.Error("the directory was removed although it is not empty")
	}
}
