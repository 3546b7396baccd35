package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// standIn returns a pwos that runs programs without a kernel. It names this test as the kernel, and makes a file when that is to end.
func standIn(run, ended string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
case $1 in
run) %s ;;
ps) mkdir -p "$XDG_RUNTIME_DIR/pwos" && echo %d >"$XDG_RUNTIME_DIR/pwos/kernel.lock" ;;
shutdown) echo >%s ;;
esac
`, run, os.Getpid(), ended)
}

// Each work is done outside and in two builds, and nothing is left.
func TestPairs(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	build, files := filepath.Join(dir, "build"), filepath.Join(dir, "files")
	testkit.Must(t, os.Mkdir(build, 0o755))
	testkit.Must(t, os.Mkdir(files, 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(build, "pwos"), standIn(`shift 2 && exec "$@"`, "/dev/null"), 0o755))
	var said bytes.Buffer
	m, err := parse([]string{"-rounds", "2", "-dir", files, "-only", "start,npm", build, build}, &said)
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var out bytes.Buffer
	testkit.Must(t, m.run(t.Context(), &out))
	if rows := regexp.MustCompile(`(?m)^ *start +(outside|build) +\d+\.\d +\d+\.\d\d( +\d+\.\d){4}$`).FindAllString(out.String(), -1); len(rows) != 3 {
		t.Errorf("%d rows, want 3, and none of npm:\n%s", len(rows), out.String())
	}
	if left := testkit.Value(os.ReadDir(files))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A work that fails ends the measurement, with what it said, and the kernel.
func TestFails(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	ended := filepath.Join(dir, "ended")
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "pwos"), standIn("echo no such agent >&2 && exit 3", ended), 0o755))
	var said bytes.Buffer
	m, err := parse([]string{"-dir", dir, "-only", "start", dir}, &said)
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if err := m.run(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "no such agent") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("the kernel was not ended: %v", err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"-help", "go run ./test/bench/pairs"},
		{"", "one or two directories"},
		{"a b c", "one or two directories"},
		{"-rounds 0 a", "greater than 0"},
		{"-only nothing a", `no work "nothing"`},
	} {
		var said bytes.Buffer
		if _, err := parse(strings.Fields(tt.args), &said); err == nil || !strings.Contains(said.String(), tt.want) {
			t.Errorf("%q: %v: %s", tt.args, err, said.String())
		}
	}
}
