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

// fakeMode in the environment makes this test binary a daemon for Launch to start.
const fakeMode = "PWOS_CLIENT_FAKE"

// starts is where every fake daemon leaves a mark, so that they can be counted.
func starts(dir string) string { return filepath.Join(dir, "starts") }

// fakeDaemon does what a daemon does for whoever starts it, and nothing else. It ends on SIGTERM.
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
		fmt.Fprintln(os.Stderr, "fake: looked around")
		fmt.Fprintln(os.Stderr, "fake: did not like it")
		tell("FAILED nothing here pleases me")
		return 1
	case "die":
		fmt.Println("fake: last words")
		return 7
	case "babble":
		tell("HELLO")
	case "hang":
		<-end
	case "occupied":
		// Another daemon is on its way out; it will be gone when the next one looks.
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

// fake is the command that starts one.
func fake(t testing.TB, mode string) *client.Command {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	return &client.Command{Path: self, Env: []string{fakeMode + "=" + mode}}
}
