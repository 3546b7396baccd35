package scripts_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/promptware-os/pwos/internal/testkit"
)

// busKey is the context key of a script's bus.
type busKey struct{}

// scriptBus is the bus of a script; nil if none runs.
type scriptBus struct{ cmd *exec.Cmd }

func (b *scriptBus) stop() {
	if b.cmd != nil {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		_ = b.cmd.Wait() // it was told to end
		b.cmd = nil
	}
}

func runBus(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bus FILE")
	}
	b, ok := ts.Value(busKey{}).(*scriptBus)
	if !ok {
		ts.Fatalf("the script has no place for a bus")
	}
	listen := "127.0.0.1:0"
	if before := ts.Getenv("BUS"); before != "" {
		listen = strings.TrimPrefix(before, "nats://")
	}
	program := testkit.Program(t, "pwos-bus")
	ts.Setenv("BUSBIN", filepath.Dir(program))
	b.cmd = exec.Command(program, "--dir", ts.MkAbs("bus"), "--members", ts.MkAbs(args[0]), "--listen", listen)
	out, err := b.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(b.cmd.Start())
	ts.Defer(b.stop)
	address, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	ts.Setenv("BUS", strings.TrimSpace(address))
}

func stopBus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: stop-bus")
	}
	if b, ok := ts.Value(busKey{}).(*scriptBus); ok {
		b.stop()
	}
}
