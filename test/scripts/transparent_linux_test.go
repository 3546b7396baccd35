package scripts_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// transparent runs a line with bash, and returns what can be seen of that.
func transparent(t *testing.T, p place, line, run string) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "in"), []byte("1\n2\n3\n"), 0o600))
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(p.env(), "RUN="+run), dir, &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	said := stderr.Bytes()
	if run != "" { // bash prints the line of a job that a signal ended
		said = bytes.ReplaceAll(said, []byte(run+" "), nil)
	}
	out := fmt.Sprintf("%v, stdout %q, stderr %q", cmd.ProcessState, shortly(stdout.Bytes()), shortly(said))
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		testkit.Must(t, err)
		out += fmt.Sprintf(", %s %s", info.Mode(), e.Name())
		if e.Type().IsRegular() {
			out += fmt.Sprintf(" %q", shortly([]byte(testkit.ReadFile(t, filepath.Join(dir, e.Name())))))
		}
	}
	return out
}

// shortly returns a text, or the digest of a long one.
func shortly(text []byte) string {
	if len(text) > 4096 {
		return fmt.Sprintf("%d bytes, %x", len(text), sha256.Sum256(text))
	}
	return string(text)
}
