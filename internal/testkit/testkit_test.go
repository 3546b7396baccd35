package testkit_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// ended is the panic of fake, instead of ending the test's goroutine.
type ended struct{ args []any }

// fake is a test that records a failure.
type fake struct{}

func (fake) Helper()           {}
func (fake) Fatal(args ...any) { panic(ended{args}) }

// TestMust: an error ends the test, and nil does nothing.
func TestMust(t *testing.T) {
	t.Parallel()
	testkit.Must(fake{}, nil)
	if got := testkit.Value(7, nil)(fake{}); got != 7 {
		t.Errorf("got %d", got)
	}
	failed := errors.New("failed")
	for name, do := range map[string]func(){
		"Must":     func() { testkit.Must(fake{}, failed) },
		"Value":    func() { testkit.Value(7, failed)(fake{}) },
		"ReadFile": func() { testkit.ReadFile(fake{}, "no/such/file") },
	} {
		func() {
			defer func() {
				if e, ok := recover().(ended); !ok || len(e.args) != 1 {
					t.Errorf("%s has not ended the test: %v", name, e)
				}
			}()
			do()
		}()
	}
}

// TestEventually waits until the condition holds.
func TestEventually(t *testing.T) {
	t.Parallel()
	n := 0
	testkit.Eventually(t, "three", func() bool { n++; return n == 3 })
	values := make(chan int, 1)
	values <- n
	if got := testkit.Receive(t, values, "n"); got != 3 {
		t.Errorf("got %d", got)
	}
}

// TestPlace: a key and a journal are at the paths that a kernel uses; a directory is removed after its test.
func TestPlace(t *testing.T) {
	t.Parallel()
	var gone *testkit.Place
	t.Run("place", func(t *testing.T) {
		p := testkit.NewPlace(t, "[clock]\n")
		gone = p
		testkit.Must(t, os.MkdirAll(p.Path("s/journal"), 0o700))
		testkit.WriteFile(t, p.Path("s/journal/2.ndjson"), "b\n")
		testkit.WriteFile(t, p.Path("s/journal/1.ndjson"), "a\n")
		if got := p.Journal(t); got != "a\nb\n" {
			t.Errorf("journal %q", got)
		}
		if p.Key(t); testkit.ReadFile(t, p.Path("config.toml")) != "[clock]\n" || testkit.ReadFile(t, p.Path("key")) == "" {
			t.Error("a file is not as it was written")
		}
	})
	if _, err := os.Stat(gone.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the place is left: %v", err)
	}
}

// TestAlive: this process is alive, and one that has ended is not.
func TestAlive(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip(err)
	}
	if !testkit.Alive(os.Getpid()) || testkit.Alive(1<<30) {
		t.Error("not so")
	}
}

// TestFilesWith finds a text in files at any depth, while other files come and go.
func TestFilesWith(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held := filepath.Join(dir, "a", "held")
	testkit.Must(t, os.MkdirAll(filepath.Dir(held), 0o700))
	testkit.Must(t, os.WriteFile(held, []byte("the secret is here"), 0o600))
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			name := filepath.Join(dir, "a", "temporary")
			if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Remove(name)); err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 1000 {
		if found := testkit.FilesWith(t, "secret", dir); !slices.Equal(found, []string{held}) {
			t.Fatalf("found %q", found)
		}
	}
	close(stop)
	testkit.Must(t, <-ended)
}

// TestWriteProgram: a program that was written can be executed, although this process forks all the time.
func TestWriteProgram(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "program"), t.Context()
	done := make(chan struct{})
	var forks sync.WaitGroup
	defer forks.Wait()
	defer close(done)
	for range 4 {
		forks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.CommandContext(ctx, "true").Run()
				}
			}
		})
	}
	for range 100 {
		testkit.WriteProgram(t, path, []byte("#!/bin/sh\n"))
		testkit.Must(t, exec.CommandContext(ctx, path).Run())
	}
}
