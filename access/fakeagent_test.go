package access_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/internal/testkit"
)

// serveAgent serves each connection to a socket with handle, and returns the socket's path. It
// stops when the test ends.
func serveAgent(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	dir := testkit.Dir(t)
	path := filepath.Join(dir, "agent.sock")
	listener := must(net.Listen("unix", path))(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			all.Go(func() { handle(conn) })
		}
	})
	t.Cleanup(func() {
		err := listener.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close() // a handler may have closed it
		}
		mu.Unlock()
		all.Wait()
		if err != nil {
			t.Error(err)
		}
	})
	return path
}

// fakeAgent is an agent that can be told to misbehave.
type fakeAgent struct {
	agent.ExtendedAgent
	list func() ([]*agent.Key, error)
	sign func(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error)
}

func (f *fakeAgent) List() ([]*agent.Key, error) {
	if f.list != nil {
		return f.list()
	}
	return f.ExtendedAgent.List()
}

func (f *fakeAgent) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	if f.sign != nil {
		return f.sign(key, data, flags)
	}
	return f.ExtendedAgent.SignWithFlags(key, data, flags)
}

// newFakeAgent returns an agent with the keys of the given vectors.
func newFakeAgent(t testing.TB, names ...string) *fakeAgent {
	t.Helper()
	f := &fakeAgent{ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent)}
	for _, name := range names {
		private := must(ssh.ParseRawPrivateKey([]byte(vector(t, name))))(t)
		if err := f.Add(agent.AddedKey{PrivateKey: private, Comment: name}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// serve serves f at a socket.
func (f *fakeAgent) serve(t testing.TB) string {
	t.Helper()
	return serveAgent(t, func(conn net.Conn) { _ = agent.ServeAgent(f, conn) }) // ends when the client closes
}

// openSSH skips the test if a program of OpenSSH is missing.
func openSSH(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s of OpenSSH is not on PATH: this test needs the real one", program)
		}
	}
}

// realAgent starts OpenSSH's ssh-agent with the keys of the given vectors. add runs ssh-add against
// it.
func realAgent(t testing.TB, names ...string) (socket string, add func(stdin string, args ...string) string) {
	t.Helper()
	openSSH(t, "ssh-agent", "ssh-add", "sh")
	dir := testkit.Dir(t)
	socket = filepath.Join(dir, "agent.sock")
	// The shell kills the agent when its input ends: with the test, or when the test program dies.
	daemon := exec.Command("sh", "-c", `ssh-agent -D -a "$0" & read -r _; kill $!; wait $!`, socket)
	leash := must(daemon.StdinPipe())(t)
	daemon.Env = append(os.Environ(), "SSH_ASKPASS=/bin/false") // every confirmation is refused
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := leash.Close()
		_ = daemon.Wait() // the error is that the agent was killed
		if err != nil {
			t.Error(err)
		}
	})
	waitForSocket(t, socket)
	add = func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("ssh-add", args...)
		cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket, "SSH_ASKPASS_REQUIRE=never", "LC_ALL=C")
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("ssh-add %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, name := range names {
		add("", "-q", keyFile(t, name))
	}
	return socket, add
}
