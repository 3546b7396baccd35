// Package tidy holds tests, with what they test, to leaving nothing behind.
package tidy

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and returns the code to exit with, which is 1 where goroutines are left. Where an actor has
// ended, its library counts what is still sent to it, for a second: so they get some time to end.
func Main(m *testing.M) int {
	code := m.Run()
	err := goleak.Find()
	for limit := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(limit); {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		code = max(code, 1)
	}
	return code
}

// Dir returns an empty directory that goes with the test. Its path is short, unlike t.TempDir's, so that there is room for that
// of a socket below it.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("a directory is left: %v", err)
		}
	})
	return dir
}
