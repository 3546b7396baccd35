package host_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// dialUnix is an agent that sends to Unix sockets: a kind and a path each.
func dialUnix(args []string) int {
	for i := 0; i+1 < len(args); i += 2 {
		said(args[i], sendUnix(args[i], args[i+1]))
	}
	return 0
}

func sendUnix(kind, path string) error {
	conn, err := net.Dial(kind, path)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	return err
}

// openUnix opens a Unix socket of each kind in a directory until the test ends, and returns arguments for dialUnix.
func openUnix(t *testing.T, dir, name string) (args []string) {
	t.Helper()
	for _, kind := range []string{"unix", "unixpacket", "unixgram"} {
		path := filepath.Join(dir, name+"-"+kind)
		if kind == "unixgram" {
			conn, err := net.ListenPacket(kind, path)
			testkit.Must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
		} else {
			l, err := net.Listen(kind, path)
			testkit.Must(t, err)
			t.Cleanup(func() { _ = l.Close() })
		}
		testkit.Must(t, sendUnix(kind, path))
		args = append(args, kind, path)
	}
	return args
}

// TestUnixSockets: a program reaches no Unix socket of another program that is in its working directory or in a directory
// of --write when it starts, and its own sockets there.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxStrict} {
		work, more := shared(t), shared(t)
		args := append(openUnix(t, work, "before"), openUnix(t, more, "more")...)
		c := helper(t, append([]string{"t-unix"}, args...)...)
		c.Dir, c.Write, c.Sandbox = work, []string{more}, mode
		p := start(t, h, c)
		for i, ok := range outcomes(all(t, p)) {
			if ok {
				t.Errorf("%s: the program has reached %s", mode, args[2*i+1])
			}
		}
	}
}
