package scripts_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestOutputOnAFullDisk: what an agent writes while the disk of the state is full arrives whole at its caller, and its log says how
// much it lacks. The state is on a small file system in memory; where the system gives no namespaces, the test is skipped.
func TestOutputOnAFullDisk(t *testing.T) {
	t.Parallel()
	p := settle(t)
	state := p.StateDir()
	testkit.Must(t, os.MkdirAll(state, 0o700))
	alone := []string{"--user", "--map-root-user", "--mount", "sh", "-c"}
	const mount = `mount -t tmpfs -o mode=700,size=16m tmpfs "$0"`
	if out, err := exec.Command("unshare", append(alone, mount, state)...).CombinedOutput(); err != nil {
		t.Skipf("needs a file system of its own: %v: %s", err, out)
	}
	kernel := exec.CommandContext(t.Context(), "unshare", append(alone, mount+` && exec pwosd`, state)...)
	own := p.command(t.Context())
	kernel.Env, kernel.Dir = own.Env, own.Dir
	testkit.Must(t, kernel.Start())
	defer func() { _ = kernel.Wait() }() // its status is not what is tested
	testkit.Eventually(t, "kernel", func() bool { return p.command(t.Context(), "--no-spawn", "status").Run() == nil })

	const most = 300_000 // 5 MB
	work := t.TempDir()
	run := p.command(t.Context(), "run", "--dir", work, "--sandbox", "off", "--",
		"sh", "-c", fmt.Sprintf("echo begin >&2; until [ -e go ]; do sleep 0.05; done; seq -f 'line %%012.0f' 1 %d >&2; touch written; until [ -e end ]; do sleep 0.05; done; echo end >&2", most))
	var got bytes.Buffer
	run.Stderr = &got
	testkit.Must(t, run.Start())
	testkit.Eventually(t, "agent", func() bool { return strings.Contains(p.pwos(t, "ps", "--json"), `"agent_id":"sh"`) })
	fills := strings.TrimSpace(p.pwos(t, "run", "-d", "--own-dir", "--sandbox", "off", "--", "sh", "-c", "while :; do cat /dev/zero >>fat; done"))
	testkit.Eventually(t, "full disk", func() bool { return p.command(t.Context(), "mem", "set", "a", strings.Repeat("x", 8000)).Run() != nil })
	testkit.WriteFile(t, filepath.Join(work, "go"), "")
	testkit.Eventually(t, "output", func() bool { _, err := os.Stat(filepath.Join(work, "written")); return err == nil })
	p.pwos(t, "kill", fills)
	testkit.Eventually(t, "room", func() bool { return p.command(t.Context(), "mem", "set", "a", strings.Repeat("x", 8000)).Run() == nil })
	testkit.WriteFile(t, filepath.Join(work, "end"), "")
	testkit.Must(t, run.Wait())

	var want strings.Builder
	want.WriteString("begin\n")
	for i := range most {
		fmt.Fprintf(&want, "line %012d\n", i+1)
	}
	want.WriteString("end\n")
	if text, end, _ := strings.Cut(got.String(), "pwos: pid "); text != want.String() || !strings.Contains(end, "exited 0") {
		t.Errorf("%d bytes arrived, want %d; the end is %.200q", len(text), want.Len(), end)
	}
	p.pwos(t, "shutdown")
}
