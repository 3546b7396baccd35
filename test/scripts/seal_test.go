package scripts_test

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestSealWithASilentAgent: sealing through an agent that does not answer ends, in the given time or in the agent's own,
// with the reason.
func TestSealWithASilentAgent(t *testing.T) {
	t.Parallel()
	p := settle(t)
	socket := p.Path("agent")
	listener, err := net.Listen("unix", socket)
	testkit.Must(t, err)
	var asked sync.WaitGroup
	asked.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Go(func() {
				_, _ = conn.Read(make([]byte, 1<<10))
				_, _ = conn.Read(make([]byte, 1)) // until the client disconnects
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		testkit.Must(t, listener.Close())
		asked.Wait()
	})
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"seal"}, 7, "did not answer within 3s"},
		{[]string{"seal", "--timeout=50ms"}, 7, "timed out after 50ms"},
	} {
		var stderr strings.Builder
		cmd := p.command(t.Context(), tt.args...)
		cmd.Env = append(cmd.Env, "SSH_AUTH_SOCK="+socket)
		cmd.Stdin, cmd.Stderr = strings.NewReader("hunter2"), &stderr
		out, err := cmd.Output()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != tt.status || len(out) > 0 || !strings.Contains(stderr.String(), tt.says) || strings.Contains(stderr.String(), "hunter2") {
			t.Errorf("pwos %v: %v, stdout %q, stderr %q, want status %d with %q", tt.args, err, out, stderr.String(), tt.status, tt.says)
		}
	}
}
