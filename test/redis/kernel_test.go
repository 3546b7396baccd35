package redis_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// kernel is a pwosd of this test, with the pwos that measures it.
type kernel struct {
	pwos string
	env  []string
}

func startKernel(t *testing.T) *kernel {
	t.Helper()
	p := testkit.NewPlace(t, "")
	p.Start(t, testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Env: []string{"TMPDIR=" + p.Dir}})
	return &kernel{pwos: testkit.Program(t, "pwos"), env: []string{
		"HOME=" + p.Dir, "TMPDIR=" + p.Dir, "PWOS_RUNTIME_DIR=" + p.RuntimeDir(), "PWOS_STATE_DIR=" + p.StateDir(),
	}}
}

// bench runs one round of pwos bench, and ignores the half of its echo.
func (k *kernel) bench(t *testing.T, w work, duration time.Duration) side {
	t.Helper()
	cmd := exec.Command(k.pwos, "bench", "--lean", "--json", "--only", w.name, "--rounds", "1", "--duration", duration.String())
	cmd.Env = k.env
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pwos bench: %v\n%s", err, said.String())
	}
	var r struct {
		Connections int `json:"connections"`
		Outstanding int `json:"outstanding"`
		Kernel      struct {
			PerSecond float64 `json:"per_second"`
			P50       float64 `json:"p50_us"`
			P99       float64 `json:"p99_us"`
		} `json:"kernel"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Connections != w.connections || r.Outstanding != w.pipeline || r.Kernel.PerSecond <= 0 {
		t.Fatalf("%s differs from the load that Redis gets: %s", w.name, out)
	}
	microseconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }
	return side{r.Kernel.PerSecond, microseconds(r.Kernel.P50), microseconds(r.Kernel.P99)}
}
