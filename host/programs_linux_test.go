package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestSandboxRuns: common programs of agents start in either sandbox, if the machine has them among the system's files.
func TestSandboxRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	strict(t, h)
	for _, name := range []string{"python3", "node", "git", "curl"} {
		for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxStrict} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				path := installed(t, name)
				c := host.Command{Argv: []string{path, "--version"}, Dir: shared(t), PID: 7, AgentID: "worker", Sandbox: mode}
				p := start(t, h, c)
				said, exit := all(t, p), wait(t, p)
				if exit.Code != 0 || !strings.ContainsAny(said, "0123456789") {
					t.Errorf("%s: %+v: %q", path, exit, said)
				}
			})
		}
	}
}

// installed returns a program among the system's files; the test is skipped if there is none.
func installed(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/usr/bin", "/usr/local/bin", "/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Skip("the program is not installed")
	return ""
}

// TestProbeLeavesMounts: the processes that probe this machine change none of its mounts, and all find the same means.
func TestProbeLeavesMounts(t *testing.T) {
	before, err := os.ReadFile("/proc/self/mountinfo")
	testkit.Must(t, err)
	want, err := host.Probe()
	testkit.Must(t, err)
	const calls = 50
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if got, err := host.Probe(); err != nil || got != want {
				t.Errorf("found %+v, %v, and before that %+v", got, err, want)
			}
		})
	}
	wg.Wait()
	after, err := os.ReadFile("/proc/self/mountinfo")
	testkit.Must(t, err)
	if string(after) != string(before) {
		t.Errorf("the machine's mounts were\n%s\nand are\n%s", before, after)
	}
}
