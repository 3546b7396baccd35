package soak_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/promptware-os/pwos/daemon"
)

func TestMain(m *testing.M) {
	daemon.Shim()
	dir, err := os.MkdirTemp("", "pws")
	if err != nil {
		panic(err)
	}
	pwosd = filepath.Join(dir, "pwosd")
	if out, err := exec.Command("go", "build", "-o", pwosd, "../../cmd/pwosd").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pwosd: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

var pwosd string // the real daemon, built without the race detector, whose shadow memory would be measured too
