package notify_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/effect/notify"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/approval"
)

// pipe makes a named pipe: its reader waits for a writer.
func pipe(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "told")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func question() *approval.Approval {
	a := new(approval.Approval)
	a.ID, a.Data = "q-1", []byte(`{"key":"k"}`)
	return a
}

// TestNotify: the command gets each question as a line of JSON, and the place of the kernel. It does not outlive the kernel.
func TestNotify(t *testing.T) {
	t.Parallel()
	told := pipe(t, testkit.Dir(t))
	n := notify.New([]string{"sh", "-c", `{ cat; echo "$PWOS_RUNTIME_DIR $$"; } > "$0"; sleep 1000 & wait`, told}, "/the/place", slog.New(slog.DiscardHandler))
	n.Raised(question())
	if text, err := os.ReadFile(told); err != nil || !strings.HasPrefix(string(text), `{"id":"q-1",`) || !strings.Contains(string(text), "\n/the/place ") {
		t.Errorf("the command got %q, %v", text, err)
	}
	n.Close()
}

// TestNotifyFails: a failure is logged with the command's output, and delays no call.
func TestNotifyFails(t *testing.T) {
	t.Parallel()
	logged := make(lines, 1024)
	n := notify.New([]string{"sh", "-c", "echo no display; exit 3"}, "", slog.New(slog.NewTextHandler(logged, nil)))
	n.Raised(question())
	if line := <-logged; !strings.Contains(line, "exit status 3") || !strings.Contains(line, "no display") {
		t.Errorf("logged %s", line)
	}
	n.Close()
	n = notify.New([]string{"sleep", "1000"}, "", slog.New(slog.NewTextHandler(logged, nil)))
	for range 300 { // more than can be queued
		n.Raised(question())
	}
	if line := <-logged; !strings.Contains(line, "too many questions") {
		t.Errorf("logged %s", line)
	}
	n.Close()
}

// lines are the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
