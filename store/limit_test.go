//go:build unix

package store_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/store"
)

// limitedProcess names the store that a process which may write no file of more than 2 MiB is to fill.
const limitedProcess = "PWOS_STORE_TEST_LIMIT"

// overfill saves more than there is room for, and says what came of it.
func overfill(path string) int {
	signal.Ignore(syscall.SIGXFSZ)
	const room = 2 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := store.Open(path, store.Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := s.Save(ctx(), "memory", head(2), 2, puts(state("new", 60, 100_000)...)); err == nil {
		fmt.Println("more was saved than there is room for")
		return 1
	}
	got, err := load(s, "memory")
	if err != nil || !equal(got, state("old", 3, 5)) {
		fmt.Println("the old snapshot is gone:", len(got), err)
		return 1
	}
	if err := s.Save(ctx(), "memory", head(3), 3, puts(state("small", 3, 5)...)); err != nil {
		fmt.Println("a small one does not fit either:", err)
		return 1
	}
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// Where the operating system refuses a write in the middle of a Save, it is that Save that fails and nothing else.
func TestWriteRefused(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, store.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(state("old", 3, 5)...)))
	testkit.Must(t, s.Close())
	self, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), limitedProcess+"="+path)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, strings.TrimSpace(string(said)))
	}
	got, err := load(open(t, path, store.Options{}), "memory")
	testkit.Must(t, err)
	if !equal(got, state("small", 3, 5)) {
		t.Fatalf("%d chunks are left", len(got))
	}
}
