package front

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// TestBeside: a front is used only if it is a program of this build's version.
func TestBeside(t *testing.T) { // alone, since a fork could keep a program open for writing
	for name, tt := range map[string]struct {
		text string
		mode os.FileMode
		used bool
	}{
		"the same":      {"#!/bin/sh\necho '" + Version() + "'\n", 0o755, true},
		"another":       {"#!/bin/sh\necho '" + Name + " v0.0.1'\n", 0o755, false},
		"fails":         {"#!/bin/sh\necho '" + Version() + "'\nexit 1\n", 0o755, false},
		"no program":    {"#!/bin/sh\necho '" + Version() + "'\n", 0o644, false},
		"empty":         {"", 0o755, false},
		"a half":        {"\x7fELF", 0o755, false},
		"asks for more": {"#!/bin/sh\nread more && echo '" + Version() + "'\n", 0o755, false},
	} {
		dir := t.TempDir()
		want := filepath.Join(dir, Name)
		testkit.Must(t, os.WriteFile(want, []byte(tt.text), tt.mode))
		if !tt.used {
			want = ""
		}
		if got := in(dir); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := in(t.TempDir()); got != "" {
		t.Errorf("there is none: %q", got)
	}
}
