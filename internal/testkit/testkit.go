// Package testkit has helpers for all tests. It fails a test on an error, waits for conditions, starts a kernel as a
// process in its own directories, and checks that a package's tests leave nothing behind. It imports no package that tests
// it, so that every test can use it; testkit/testkernel runs a kernel in the test's own process.
package testkit

import (
	"context"
	"os"
	"testing"
	"time"
)

// Patience is how long a test waits before it fails. It measures nothing.
const Patience = 2 * time.Minute

// TB is the part of testing.TB that Must and Value need; rapid.T has it too.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Must ends the test if err is not nil.
func Must(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value returns v, or ends the test if err is not nil: testkit.Value(os.ReadFile(name))(t).
func Value[V any](v V, err error) func(TB) V {
	return func(t TB) V {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Rounds is how often a test repeats a step: few in a plain run, more under the race detector, as in .ci/run, and most with
// PWOS_LONG=1.
func Rounds(plain, raced, long int) int {
	switch {
	case os.Getenv("PWOS_LONG") != "":
		return long
	case RaceDetector():
		return raced
	}
	return plain
}

// Context returns a context that ends after Patience, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Eventually polls a condition that has no event to wait for. what describes the condition.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); <-time.After(min(max(2*time.Millisecond, time.Since(begun)/20), 50*time.Millisecond)) {
		if time.Since(begun) > Patience {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Receive returns the next value of a channel. what describes the value.
func Receive[V any](t testing.TB, from <-chan V, what string) (v V) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(Patience):
		t.Fatalf("not within %v: %s", Patience, what)
	}
	return v
}

// ReadFile returns a file's content.
func ReadFile(t TB, name string) string {
	t.Helper()
	return string(Value(os.ReadFile(name))(t))
}

// WriteFile creates a file that only its owner may read.
func WriteFile(t TB, name, text string) {
	t.Helper()
	Must(t, os.WriteFile(name, []byte(text), 0o600))
}
