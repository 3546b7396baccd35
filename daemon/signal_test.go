package daemon_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
)

func TestSignalAnswersWhatWasReceived(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			d := spawn(t, testkit.Dir(t), nil).serving(t)
			p := dial(t, d.KernelSocket)
			p.send(pings(inFlight))
			p.wantPing(0)
			testkit.Must(t, d.cmd.Process.Signal(signal))
			for i := 1; i < inFlight; i++ {
				p.wantPing(i)
			}
			p.wantEnd()
			d.wantExit(t, 0)
			(&running{Places: d.Places}).wantGone(t)
		})
	}
}

// A client that does not read its answers delays the end after the first signal, not after the second.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	d := spawn(t, testkit.Dir(t), nil).serving(t)
	p := dial(t, d.KernelSocket)
	stuff(t, p)
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	testkit.Eventually(t, "the first signal's effect", func() bool {
		_, err := os.Lstat(d.KernelSocket)
		return errors.Is(err, os.ErrNotExist)
	})
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	begin := time.Now()
	d.wantExit(t, 0)
	if took := time.Since(begin); took > daemon.Grace/2 {
		t.Errorf("it took %v", took)
	}
	(&running{Places: d.Places}).wantGone(t)
}

// stuff sends frames whose answers are not read, until the daemon reads no more, and returns what was sent.
func stuff(t *testing.T, p *peer) (taken []byte) {
	t.Helper()
	all := []byte(pings(20_000))
	for n := 0; ; {
		testkit.Must(t, p.nc.SetWriteDeadline(time.Now().Add(time.Second)))
		more, err := p.nc.Write(all[n:])
		n += more
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			t.Fatalf("%d bytes of %d were sent, %v", n, len(all), err)
		case more == 0: // the daemon does not read, instead of reading slowly
			return all[:n]
		}
	}
}

// A log that is not read any more does not end the daemon.
func TestLogReaderGoesAway(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	d := spawn(t, testkit.Dir(t), func(c *exec.Cmd) { c.Stderr = w }, "--log-level=debug").serving(t)
	testkit.Must(t, errors.Join(w.Close(), r.Close()))
	for range 3 { // each is logged
		p := dial(t, d.KernelSocket)
		p.send(pings(1))
		p.wantPing(0)
		testkit.Must(t, p.nc.Close())
	}
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.wantExit(t, 0)
}

// The service manager gets STOPPING when the end starts, for any reason, and not only when it is complete.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		end  func(t *testing.T, d *process)
	}{
		"signal":  {end: func(t *testing.T, d *process) { testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM)) }},
		"syscall": {end: func(t *testing.T, d *process) { dial(t, d.KernelSocket).send(shutdownFrame) }},
		"idle":    {args: []string{"--idle-timeout=1ms"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			address := filepath.Join(dir, "n")
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			testkit.Must(t, err)
			defer manager.Close()
			testkit.Must(t, manager.SetDeadline(time.Now().Add(testkit.Patience)))
			heard := func(want string) {
				t.Helper()
				text := make([]byte, 400)
				n, err := manager.Read(text)
				testkit.Must(t, err)
				if !strings.Contains("\n"+string(text[:n])+"\n", "\n"+want+"\n") {
					t.Errorf("told %q, want %s", text[:n], want)
				}
			}
			d := spawn(t, dir, func(c *exec.Cmd) { c.Env = append(c.Env, "NOTIFY_SOCKET="+address) }, tt.args...).serving(t)
			heard("READY=1")
			if tt.end == nil {
				heard("STOPPING=1")
				d.wantExit(t, 0)
				return
			}
			stuff(t, dial(t, d.KernelSocket)) // so that the end takes time
			tt.end(t, d)
			heard("STOPPING=1")
			select {
			case <-d.exited:
				t.Error("the service manager got STOPPING only when the daemon had ended")
			default:
			}
		})
	}
}
