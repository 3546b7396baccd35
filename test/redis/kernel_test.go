package redis_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// kernel is a pwosd of our own, with the pwos that measures it.
type kernel struct {
	pwos string
	env  []string
}

func startKernel(t *testing.T) *kernel {
	t.Helper()
	dir := shortDir(t)
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/pwos", "../../cmd/pwosd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	k := &kernel{pwos: filepath.Join(dir, "pwos"), env: []string{
		"HOME=" + dir, "TMPDIR=" + dir, "PWOS_RUNTIME_DIR=" + filepath.Join(dir, "r"), "PWOS_STATE_DIR=" + filepath.Join(dir, "s"),
	}}
	d := testkit.Daemon{Command: []string{filepath.Join(dir, "pwosd")}, Dir: dir, Env: []string{"TMPDIR=" + dir}}
	l := d.Start(t)
	t.Cleanup(func() { l.Stop(t) })
	return k
}

// bench runs one round of pwos bench, and leaves its echo's half aside.
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
		t.Fatalf("%s is not the load that Redis gets: %s", w.name, out)
	}
	microseconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }
	return side{r.Kernel.PerSecond, microseconds(r.Kernel.P50), microseconds(r.Kernel.P99)}
}
