package access_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestKnownKernels: the file keeps one pin for each socket, whatever its name, and only its user
// may read it.
func TestKnownKernels(t *testing.T) {
	t.Parallel()
	known := access.KnownKernels{Path: filepath.Join(privateDir(t), "made", "for it", "known_kernels")}
	if list := must(known.List())(t); len(list) != 0 {
		t.Errorf("before anything: %v", list)
	}
	one, two := newSigner(t, "ed25519").Key(), newSigner(t, "p256").Key()
	const odd = "/run/with some blanks #/ükernel.sock"
	for socket, key := range map[string]access.PublicKey{socket: one, odd: two} {
		if fresh := must(known.Pin(t.Context(), socket, key))(t); !fresh {
			t.Errorf("%s is known before Pin", socket)
		}
		if fresh := must(known.Pin(t.Context(), socket, key))(t); fresh {
			t.Errorf("%s is not known after Pin", socket)
		}
		if got := must(known.Lookup(socket))(t); got != key {
			t.Errorf("%s has %v", socket, got)
		}
	}
	_, err := known.Pin(t.Context(), socket, two)
	refused(t, err, fault.AuthHostChanged)
	if mode := must(os.Stat(known.Path))(t).Mode(); mode != 0o600 {
		t.Errorf("the file has mode %v", mode)
	}
	if err := errors.Join(known.Accept(t.Context(), socket, two), known.Forget(t.Context(), odd)); err != nil {
		t.Fatal(err)
	}
	if list := must(known.List())(t); len(list) != 1 || list[0] != (access.KnownKernel{Socket: socket, Key: two}) {
		t.Errorf("got %v", list)
	}
	if left := must(filepath.Glob(filepath.Join(filepath.Dir(known.Path), ".*")))(t); len(left) != 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if err := known.Accept(t.Context(), "/a\nb", two); err == nil {
		t.Error("a socket name of two lines was pinned")
	}
}

// TestKnownKernelsAtOnce: if many clients pin at once, each finds its pin kept, and one alone was
// first.
func TestKnownKernelsAtOnce(t *testing.T) {
	t.Parallel()
	known := access.KnownKernels{Path: filepath.Join(privateDir(t), "known_kernels")}
	key := newSigner(t, "ed25519").Key()
	const clients = 8
	var all sync.WaitGroup
	fresh := make([]bool, clients)
	errs := make([]error, 2*clients)
	for i := range clients {
		all.Go(func() {
			fresh[i], errs[i] = known.Pin(context.Background(), socket, key)
			_, errs[clients+i] = known.Pin(context.Background(), fmt.Sprintf("/run/%d.sock", i), key)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	first := 0
	for _, f := range fresh {
		if f {
			first++
		}
	}
	if list := must(known.List())(t); len(list) != clients+1 || first != 1 {
		t.Errorf("%d pins, %d of them first", len(list), first)
	}
}

// TestKnownKernelsRefused: a file that another user may write, or that is malformed, trusts no
// kernel.
func TestKnownKernelsRefused(t *testing.T) {
	t.Parallel()
	good := newSigner(t, "ed25519").Key().String() + " " + socket + "\n"
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"others may write": {good, 0o606},
		"a broken key":     {"ssh-ed25519 AAAA " + socket, 0o600},
		"no socket":        {newSigner(t, "ed25519").Key().String() + "\n", 0o600},
		"a relative one":   {newSigner(t, "ed25519").Key().String() + " kernel.sock\n", 0o600},
		"junk":             {"\x00\x01", 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := access.KnownKernels{Path: filepath.Join(privateDir(t), "known_kernels")}
			write(t, known.Path, c.text)
			if err := os.Chmod(known.Path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err := known.Pin(t.Context(), "/run/other.sock", newSigner(t, "ed25519").Key())
			if !errors.Is(err, fault.PlaceUnsafe) {
				t.Errorf("got %v", err)
			}
			if after := string(must(os.ReadFile(known.Path))(t)); after != c.text {
				t.Error("the file was written")
			}
		})
	}
}

// TestKnownKernelsLocked: the wait for another client's lock is bounded.
func TestKnownKernelsLocked(t *testing.T) {
	t.Parallel()
	known := access.KnownKernels{Path: filepath.Join(privateDir(t), "known_kernels")}
	lock := must(os.Create(known.Path + ".lock"))(t)
	defer func() { must(0, lock.Close())(t) }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := known.Pin(ctx, socket, newSigner(t, "ed25519").Key()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
