package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// alone makes calls without a daemon, with a separate state.
type alone struct {
	t   *testing.T
	dir string
}

func (a alone) env(name string) string {
	return map[string]string{
		"PWOS_STATE_DIR": filepath.Join(a.dir, "s"), "PWOS_RUNTIME_DIR": filepath.Join(a.dir, "r"), "PWOS_CONFIG": filepath.Join(a.dir, "c", "config.toml"),
	}[name]
}

func (a alone) call(ctx context.Context, name string, args ...string) ([]byte, error) {
	a.t.Helper()
	in := &schema.CallInput{Syscall: name}
	for _, arg := range args {
		in.Args = append(in.Args, schema.Value(arg))
	}
	return daemon.Once(ctx, nil, a.env, io.Discard, in)
}

func newAlone(t *testing.T) alone {
	t.Helper()
	a := alone{t, t.TempDir()}
	testkit.Must(t, os.MkdirAll(filepath.Join(a.dir, "c"), 0o700))
	testkit.Must(t, os.WriteFile(a.env("PWOS_CONFIG"), nil, 0o600))
	return a
}

// TestOnce: a call without a daemon has the effects of any call: its changes are visible to the next one, and its errors
// are those of a daemon (ABI 7.2).
func TestOnce(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	if _, err := a.call(t.Context(), "memory", `"set"`, `"k"`, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	if data, err := a.call(t.Context(), "memory", `"get"`, `"k"`); err != nil || string(data) != `{"n":1}` {
		t.Errorf("%s, %v", data, err)
	}
	for name, code := range map[string]int{"nothing": 404, "echo": 422} {
		if data, err := a.call(t.Context(), name); fault.Of(err).Code() != code || data != nil {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
	if _, err := os.Lstat(a.env("PWOS_RUNTIME_DIR")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the runtime directory was touched: %v", err)
	}
}

// TestOnceWaits: a waiting call ends when its caller disconnects.
func TestOnceWaits(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	if _, err := a.call(t.Context(), "spawn", `"agent"`, `{"capabilities":{"allowed_syscalls":["Ipc.*"]}}`); err != nil {
		t.Fatal(err)
	}
	for patience := 50 * time.Millisecond; ; patience *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		data, err := a.call(ctx, "receive", `1`, `{"wait_ms":30000,"pid":1}`)
		cancel()
		switch {
		case errors.Is(err, fault.Unavailable):
			return
		case errors.Is(err, context.DeadlineExceeded) && patience < time.Minute: // before the kernel was started
		default:
			t.Fatalf("%s, %v", data, err)
		}
	}
}

// TestOnceIsLockedOut: such a call fails if a daemon uses the same state, and if there are authorized keys.
func TestOnceIsLockedOut(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	cfg := config.Default(a.env, os.Getuid(), a.dir)
	if cfg.RuntimeDir = filepath.Join(a.dir, "other"); len(cfg.RuntimeDir) > 80 {
		t.Skip("the directory for tests is too long for a socket")
	}
	d := daemon.New(cfg, nil, slog.New(slog.DiscardHandler))
	if err := d.Open(t.Context()); err != nil {
		t.Fatal(errors.Join(err, d.Close()))
	}
	if data, err := a.call(t.Context(), "ping", `1`); !errors.Is(err, daemon.ErrRunning) {
		t.Errorf("while a daemon uses the state: %s, %v", data, err)
	}
	testkit.Must(t, d.Close())
	before, err := os.ReadFile(filepath.Join(cfg.StateDir, "journal", "00000000000000000001.ndjson"))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(a.dir, "c", "authorized_keys"), nil, 0o600))
	if data, err := a.call(t.Context(), "ping", `1`); err == nil || !strings.Contains(err.Error(), "admits only authorized keys") {
		t.Errorf("with keys: %s, %v", data, err)
	}
	after, err := os.ReadFile(filepath.Join(cfg.StateDir, "journal", "00000000000000000001.ndjson"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the journal has changed: %v", err)
	}
}
