package client_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// fakeMode is the environment variable that makes this test binary a daemon, which Launch starts.
const fakeMode = "PWOS_CLIENT_FAKE"

// starts is the file to which every fake daemon appends a line, so that they can be counted.
func starts(dir string) string { return filepath.Join(dir, "starts") }

// fakeDaemon does for its parent what a daemon does, and nothing else. It ends on SIGTERM.
func fakeDaemon(mode string) (code int) {
	places := unixsock.PlacesIn(os.Getenv("PWOS_RUNTIME_DIR"))
	ready := os.NewFile(3, "readiness")
	tell := func(format string, args ...any) { fmt.Fprintf(ready, format+"\n", args...) }
	marks, err := os.OpenFile(starts(places.Dir), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(marks, os.Getpid())
	}
	if err != nil {
		tell("FAILED %v", err)
		return 1
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	switch mode {
	case "refuse":
		fmt.Fprintln(os.Stderr, "fake: reading the state")
		fmt.Fprintln(os.Stderr, "fake: giving up")
		tell("FAILED the state is unreadable")
		return 1
	case "die":
		fmt.Println("fake: last words")
		return 7
	case "babble":
		tell("HELLO")
	case "hang":
		<-end
	case "occupied":
		// Another daemon is ending, and has ended when the next one starts.
		if info, err := marks.Stat(); err == nil && info.Size() < 20 {
			tell("RUNNING")
			return 1
		}
		fallthrough
	default:
		if err := os.Remove(places.KernelSocket); err != nil && !os.IsNotExist(err) {
			tell("FAILED %v", err)
			return 1
		}
		stop, err := startKernel(places, answerAll)
		if err != nil {
			tell("FAILED %v", err)
			return 1
		}
		defer stop()
		tell("READY %d", os.Getpid())
	}
	ready.Close()
	<-end
	return 0
}

// fake is the command that starts a fake daemon.
func fake(t testing.TB, mode string) *client.Command {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	return &client.Command{Path: self, Env: []string{fakeMode + "=" + mode}}
}
