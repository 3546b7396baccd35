package systemd_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/systemd"
)

// role is the environment variable that makes the test binary a daemon with the passed sockets: only a new process can
// get descriptors from 3 on.
const role = "SYSTEMD_TEST_DAEMON"

func TestActivation(t *testing.T) {
	if os.Getenv(role) != "" {
		daemon()
		return
	}
	t.Parallel()
	tests := []struct {
		name  string
		fds   []func(t *testing.T, path string) *os.File
		env   []string
		want  string
		other bool // the sockets are meant for another process
	}{
		{name: "not activated", want: "kernel=- events=-"},
		{name: "by order", fds: files(listening, listening), want: "kernel=s0 events=s1"},
		{name: "only one", fds: files(listening), want: "kernel=s0 events=-"},
		{name: "by name", fds: files(listening, listening), env: []string{"LISTEN_FDNAMES=events:kernel"}, want: "kernel=s1 events=s0"},
		{name: "only the legacy one", fds: files(listening), env: []string{"LISTEN_FDNAMES=events"}, want: "kernel=- events=s0"},
		{name: "names of the unit", fds: files(listening, listening), env: []string{"LISTEN_FDNAMES=pwosd.socket:pwosd.socket"}, want: "kernel=s0 events=s1"},
		{name: "another process's", fds: files(listening), other: true, want: "kernel=- events=-"},
		{name: "an unknown name", fds: files(listening, listening), env: []string{"LISTEN_FDNAMES=kernel:metrics"}, want: `error: socket activation: unknown or repeated socket name "metrics"`},
		{name: "a name twice", fds: files(listening, listening), env: []string{"LISTEN_FDNAMES=kernel:kernel"}, want: `error: socket activation: unknown or repeated socket name "kernel"`},
		{name: "too many", fds: files(listening, listening, listening), want: "error: socket activation: 3 sockets"},
		{name: "fewer names", fds: files(listening, listening), env: []string{"LISTEN_FDNAMES=kernel"}, want: "error: socket activation: LISTEN_FDNAMES"},
		{name: "no count", env: []string{"LISTEN_FDS=many"}, want: "error: socket activation: LISTEN_FDS"},
		{name: "negative count", env: []string{"LISTEN_FDS=-1"}, want: "error: socket activation: LISTEN_FDS"},
		{name: "missing descriptor", fds: files(listening), env: []string{"LISTEN_FDS=2"}, want: "error: socket activation: descriptor"},
		{name: "a file", fds: files(listening, plain), want: "error: socket activation: descriptor 4"},
		{name: "a datagram socket", fds: files(datagram), want: "error: socket activation: descriptor 3"},
		{name: "a TCP socket", fds: files(tcp), want: "error: socket activation: descriptor 3"},
		{name: "a connection", fds: files(connected), want: "error: socket activation: descriptor 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			child := exec.Command(os.Args[0], "-test.run=^TestActivation$")
			child.Env = append(os.Environ(), role+"="+map[bool]string{false: "mine", true: "other"}[tt.other])
			child.Env = append(child.Env, "GORACE=atexit_sleep_ms=0", "LISTEN_FDS="+strconv.Itoa(len(tt.fds)))
			child.Env = append(child.Env, tt.env...)
			for i, open := range tt.fds {
				child.ExtraFiles = append(child.ExtraFiles, open(t, filepath.Join(dir, "s"+strconv.Itoa(i))))
			}
			out, err := child.Output()
			testkit.Must(t, err)
			got, _, _ := strings.Cut(string(out), "\n")
			if got != tt.want && !(strings.HasPrefix(tt.want, "error:") && strings.HasPrefix(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// daemon prints the sockets that it was passed, and anything that a child would inherit.
func daemon() {
	pid := os.Getpid()
	if os.Getenv(role) == "other" {
		pid++
	}
	os.Setenv("LISTEN_PID", strconv.Itoa(pid))
	sockets, err := systemd.Sockets(os.Getenv, os.Unsetenv)
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	kernel, events, err := systemd.Assign(sockets)
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Print("kernel="+base(kernel), " events="+base(events))
	if os.Getenv(role) == "mine" {
		fmt.Print(left())
	}
	fmt.Println()
	for _, s := range sockets {
		path := s.Listener.Addr().String()
		s.Listener.Close()
		if _, err := os.Lstat(path); err != nil {
			os.Exit(1) // the path was unlinked
		}
	}
}

func base(ln *net.UnixListener) string {
	if ln == nil {
		return "-"
	}
	return filepath.Base(ln.Addr().String())
}

// left returns the variables and descriptors that a child would inherit, "" if there are none.
func left() (what string) {
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if _, ok := os.LookupEnv(name); ok {
			what += " " + name
		}
	}
	child := exec.Command("sh", "-c", "ls -l /proc/self/fd /dev/fd 2>/dev/null")
	out, _ := child.Output()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "socket:") {
			what += " " + strings.TrimSpace(line)
		}
	}
	return what
}

func files(open ...func(*testing.T, string) *os.File) []func(*testing.T, string) *os.File {
	return open
}

func listening(t *testing.T, path string) *os.File {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	testkit.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return duplicate(t, ln)
}

func datagram(t *testing.T, path string) *os.File {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return duplicate(t, conn)
}

func tcp(t *testing.T, _ string) *os.File {
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testkit.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	return duplicate(t, ln)
}

func connected(t *testing.T, path string) *os.File {
	listening(t, path)
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return duplicate(t, conn)
}

func plain(t *testing.T, path string) *os.File {
	file, err := os.Create(path)
	testkit.Must(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func duplicate(t *testing.T, conn interface{ File() (*os.File, error) }) *os.File {
	file, err := conn.File()
	testkit.Must(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

// TestVariablesAreHidden: the variables are removed also if the sockets are meant for another process.
func TestVariablesAreHidden(t *testing.T) {
	t.Parallel()
	env := map[string]string{"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b", "LISTEN_PIDFDID": "3", "HOME": "/"}
	sockets, err := systemd.Sockets(func(name string) string { return env[name] }, func(name string) error {
		delete(env, name)
		return nil
	})
	if sockets != nil || err != nil {
		t.Errorf("got %v, %v", sockets, err)
	}
	if len(env) != 1 {
		t.Errorf("left %v", env)
	}
}
