package client_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
)

// launched starts a program as a daemon that reports to be ready and sleeps, and kills it after the test.
func launched(t *testing.T, dir, script string, env ...string) *client.Daemon {
	t.Helper()
	d, err := client.Launch(testkit.Context(t), client.Command{
		Path: "/bin/sh", Args: []string{"-c", script + "\necho READY $$ >&3\nexec 3>&-\nexec sleep 600"}, Env: env,
	}, dir)
	testkit.Must(t, err)
	t.Cleanup(func() {
		testkit.Must(t, d.Kill())
		if err := d.Wait(); err == nil {
			t.Error("a killed process ended without an error")
		}
	})
	return d
}

func TestLaunchEnvironment(t *testing.T) {
	t.Parallel()
	places := tempPlaces(t)
	launched(t, places.Dir, `echo "cwd $PWD runtime $PWOS_RUNTIME_DIR config $PWOS_CONFIG notify [$NOTIFY_SOCKET]"; cat`,
		"PWOS_CONFIG=config.toml", "NOTIFY_SOCKET=/run/manager")
	here, err := os.Getwd()
	testkit.Must(t, err)
	text, err := os.ReadFile(places.Log)
	testkit.Must(t, err)
	want := "cwd / runtime " + places.Dir + " config " + filepath.Join(here, "config.toml") + " notify []\n"
	if string(text) != want {
		t.Errorf("the log has %q, want %q", text, want)
	}
	info, err := os.Stat(places.Log)
	testkit.Must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("the log's mode is %v, want 0600", info.Mode())
	}
}

// TestLaunchSession: a daemon has a session of its own, since it outlives the terminal.
func TestLaunchSession(t *testing.T) {
	t.Parallel()
	d := launched(t, tempPlaces(t).Dir, "")
	session, err := unix.Getsid(d.PID())
	testkit.Must(t, err)
	if session != d.PID() {
		t.Errorf("session %d, want %d", session, d.PID())
	}
}

// TestLaunchHandsDownNothing: the daemon does not keep an inherited pipe open.
func TestLaunchHandsDownNothing(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	defer r.Close()
	// As of a shell that starts this process with `5>pipe`.
	inherited, err := syscall.Dup(int(w.Fd()))
	testkit.Must(t, err)
	testkit.Must(t, w.Close())
	launched(t, tempPlaces(t).Dir, "")
	testkit.Must(t, syscall.Close(inherited))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want the end of the pipe", err)
	}
}

func TestLaunchCancelled(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	cancel(enough)
	_, err := client.Launch(ctx, *fake(t, "hang"), tempPlaces(t).Dir)
	if !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause of the context's end", err)
	}
	if _, err := client.Launch(testkit.Context(t), client.Command{Path: "/no/such/program"}, tempPlaces(t).Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that says that the program does not exist", err)
	}
}
