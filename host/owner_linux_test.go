package host_test

import (
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// listen opens a socket like the kernel's.
func listen(t *testing.T) *net.UnixListener {
	t.Helper()
	dir := testkit.Dir(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, l.Close()) })
	return l
}

// showSocket lets a program connect to a socket as to the kernel's.
func showSocket(c *host.Command, l *net.UnixListener) {
	dir := filepath.Dir(l.Addr().String())
	c.Sockets = host.Place{Source: dir, Target: dir}
	c.Write = []string{dir}
}

// accept accepts a connection and queries its owner.
func accept(t *testing.T, h *host.Host, l *net.UnixListener, before func()) (*host.Process, error) {
	t.Helper()
	conn, err := l.AcceptUnix()
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, conn.Close()) })
	before()
	raw, err := conn.SyscallConn()
	testkit.Must(t, err)
	return h.Peer(raw)
}

// TestPeer: a process of an agent that connects to the socket is identified as the agent; the operator is not an agent.
func TestPeer(t *testing.T) {
	t.Parallel()
	h := open(t)
	self, err := os.Executable()
	testkit.Must(t, err)
	other := start(t, h, shell(t, "read x"))
	for name, script := range map[string]string{
		"itself":          `exec "$0" t-connect "$1"`,
		"a child":         `"$0" t-connect "$1"; :`,
		"another session": `setsid "$0" t-connect "$1"; :`,
		"an orphan":       `(setsid sh -c 'setsid "$0" t-connect "$1" & ' "$0" "$1" &); while :; do sleep 1000; done`,
	} {
		for _, sandbox := range []host.Mode{host.SandboxDefault, host.SandboxOff} { // connected by the host, and by itself
			t.Run(name+", "+string(sandbox), func(t *testing.T) {
				t.Parallel()
				l := listen(t)
				c := shell(t, "")
				c.Argv, c.Sandbox = []string{"/bin/sh", "-c", script, self, l.Addr().String()}, sandbox
				showSocket(&c, l)
				p := start(t, h, c)
				owner, err := accept(t, h, l, func() {})
				if owner != p || err != nil || owner == other {
					t.Errorf("the owner is %v, %v", owner, err)
				}
				testkit.Must(t, p.Terminate(t.Context(), 0))
			})
		}
	}
	l := listen(t)
	conn, err := net.Dial("unix", l.Addr().String())
	testkit.Must(t, err)
	defer conn.Close()
	if owner, err := accept(t, h, l, func() {}); owner != nil || err != nil {
		t.Errorf("the owner of the operator's process is %v, %v", owner, err)
	}
}

// TestUnhosted: a kernel that hosts nothing also recognizes agents, and only them.
func TestUnhosted(t *testing.T) {
	t.Parallel()
	h := open(t)
	asked := func(l *net.UnixListener) error {
		conn, err := l.AcceptUnix()
		testkit.Must(t, err)
		defer conn.Close()
		raw, err := conn.SyscallConn()
		testkit.Must(t, err)
		return host.Unhosted(raw)
	}
	l := listen(t)
	c := helper(t, "t-connect", l.Addr().String())
	c.Sandbox = host.SandboxOff // a confined one does not reach it
	p := start(t, h, c)
	if err := asked(l); !errors.Is(err, host.ErrStranger) {
		t.Errorf("an agent that connects to a kernel without agents: %v", err)
	}
	testkit.Must(t, p.Terminate(t.Context(), 0))
	conn, err := net.Dial("unix", l.Addr().String())
	testkit.Must(t, err)
	defer conn.Close()
	if err := asked(l); err != nil {
		t.Errorf("the operator that connects to a kernel without agents: %v", err)
	}
}

// TestPeerGone: a peer that has ended has no owner, not even the operator: its number may have been reused.
func TestPeerGone(t *testing.T) {
	t.Parallel()
	h := open(t)
	l := listen(t)
	c := helper(t, "t-connect", l.Addr().String())
	showSocket(&c, l)
	for _, sandbox := range []host.Mode{host.SandboxDefault, host.SandboxOff} {
		c.Sandbox = sandbox
		p := start(t, h, c)
		owner, err := accept(t, h, l, func() { testkit.Must(t, p.Terminate(t.Context(), 0)) })
		if owner != nil || !errors.Is(err, host.ErrGone) {
			t.Errorf("%s: got %v, %v", sandbox, owner, err)
		}
	}
}

// TestOwnerOfOthers: processes of others have no owner.
func TestOwnerOfOthers(t *testing.T) {
	t.Parallel()
	h, other := open(t), open(t)
	for _, pid := range []int{1, os.Getpid(), os.Getppid()} {
		if owner, err := h.Owner(pid); owner != nil || err != nil {
			t.Errorf("the owner of process %d is %v, %v", pid, owner, err)
		}
	}
	if owner, err := h.Owner(math.MaxInt32); owner != nil || !errors.Is(err, host.ErrGone) {
		t.Errorf("the owner of a process that does not exist is %v, %v", owner, err)
	}
	p := start(t, other, shell(t, "read x"))
	if owner, err := h.Owner(p.OSPID()); owner != nil || !errors.Is(err, host.ErrStranger) {
		t.Errorf("the owner of another host's agent is %v, %v", owner, err)
	}
}

// TestTamper: a mark can be broken, which is detected and kills the process. It cannot be raised, not by user 0 and not in
// a namespace in which the program is user 0.
func TestTamper(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, value := range map[string]uint64{"spoil": 1000, "zero": 0} {
		for _, which := range []string{"locks", "rss"} {
			// In a new session, orphaned, so that only the mark identifies it.
			c := shell(t, `(setsid "$0" t-limit "$1" "$2" pid &); while :; do sleep 1000; done`)
			c.Argv = append(c.Argv[:3], helper(t).Argv[0], which, u64(value))
			p := start(t, h, c)
			pid := readPID(t, p.OSPID(), filepath.Join(c.Dir, "pid"))
			testkit.Must(t, os.Remove(filepath.Join(c.Dir, "pid")))
			// It is first the agent's, then tampered with, then gone. It must never be without an owner, since that would
			// make it the operator's.
			testkit.Eventually(t, "the end of the process", func() bool {
				if owner, err := h.Owner(pid); owner != p && !errors.Is(err, host.ErrTampered) && !errors.Is(err, host.ErrGone) {
					t.Errorf("%s %s: the owner is %v, %v", name, which, owner, err)
				}
				return !alive(pid)
			})
			if !alive(p.OSPID()) {
				t.Error("the agent ended with the process")
			}
			testkit.Must(t, p.Terminate(t.Context(), 0))
		}
	}
	p := start(t, h, shell(t, "read x"))
	locks, rss := host.MarkOf(p)
	for _, try := range [][]string{
		{"locks", u64(math.MaxUint64)},
		{"rss", u64(math.MaxUint64)},
		{"locks", u64(locks + 1<<30)},
		{"rss", u64(rss + 1<<30)},
	} {
		c := helper(t, append([]string{"t-limit"}, try...)...)
		if got := output(t, h, c); got != "limit: operation not permitted\n" {
			t.Errorf("%v: %q", try, got)
		}
		c.Argv = append([]string{"unshare", "--user", "--map-root-user"}, c.Argv...)
		if got := output(t, h, c); strings.Contains(got, "ok") {
			t.Errorf("%v in a namespace: %q", try, got)
		}
	}
}

// TestSibling: a process that an agent makes a child of its own parent still belongs to the agent, and is reaped.
func TestSibling(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := helper(t, "t-sibling", "pid")
	p := start(t, h, c)
	pid := readPID(t, p.OSPID(), filepath.Join(c.Dir, "pid"))
	_, above := stat(p.OSPID())
	if _, parent := stat(pid); parent != above || !p.Has(pid) {
		t.Errorf("the parent is %d, and it counts as the agent's: %v", parent, p.Has(pid))
	}
	testkit.Must(t, p.Terminate(t.Context(), 0))
	if state, _ := stat(pid); state != 0 {
		t.Errorf("process %d is left in state %c", pid, state)
	}
}

// TestNested: a hosted program cannot host, since its agents could not be distinguished from itself.
func TestNested(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := output(t, open(t), helper(t, "t-daemon", "nested", dir)); !strings.Contains(got, host.ErrUnsupported.Error()) {
		t.Errorf("got %q", got)
	}
}

// TestMarks: lowering limits never turns one mark into another, and no mark is read as another.
func TestMarks(t *testing.T) {
	t.Parallel()
	part := rapid.Uint64()
	rapid.Check(t, func(t *rapid.T) {
		make := func(name string) host.Mark {
			return host.NewMark(host.InstanceOf(rapid.String().Draw(t, name)), part.Draw(t, name)&(1<<15-1), part.Draw(t, name))
		}
		a, b := make("a"), make("b")
		locks, rss := a.Limits()
		if m, ok := host.ReadMark(locks, rss); !ok || m != a {
			t.Fatalf("%x is read as %x, %v", a, m, ok)
		}
		otherLocks, otherRSS := b.Limits()
		if a != b && (otherLocks <= locks) == (otherRSS <= rss) {
			t.Fatalf("lowering the limits turns mark %x into mark %x", a, b)
		}
		if lower := part.Draw(t, "lower"); lower < locks {
			if _, ok := host.ReadMark(lower, rss); ok {
				t.Fatal("a broken mark is read as a mark")
			}
		}
	})
	for _, pair := range [][2]uint64{{math.MaxUint64, math.MaxUint64}, {0, 0}, {1 << 62, 0}, {math.MaxUint64, 1 << 62}} {
		if m, ok := host.ReadMark(pair[0], pair[1]); ok {
			t.Errorf("%v is read as %x", pair, m)
		}
	}
}
