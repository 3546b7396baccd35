package redis_test

import (
	"os"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/test/bench/load"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// startKernel starts a pwosd of this test, and returns its socket.
func startKernel(t *testing.T) string {
	t.Helper()
	p := testkit.NewPlace(t, "")
	p.Start(t, testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Env: []string{"TMPDIR=" + p.Dir}})
	return p.Socket()
}

// measure runs one round against the kernel.
func measure(t *testing.T, socket string, w load.Workload, duration time.Duration) side {
	t.Helper()
	r := testkit.Value(load.Run(t.Context(), w, load.Config{Kernel: socket, Duration: duration, Rounds: 1, Lean: true}))(t)
	return side{r.Kernel.PerSecond, r.Kernel.P50, r.Kernel.P99}
}
