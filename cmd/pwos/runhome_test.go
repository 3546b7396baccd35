package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestToolchains: a toolchain of the user's home is named where PATH leads to it and it is there, and the caller's own value stays.
func TestToolchains(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, dir := range []string{".rustup", ".nvm", ".pyenv", ".volta"} {
		testkit.Must(t, os.Mkdir(filepath.Join(home, dir), 0o700))
	}
	path := strings.Join([]string{home + "/.cargo/bin", home + "/.nvm/versions/node/v22/bin", home + "/.pyenv-other/bin", home + "/.asdf/shims", home + "/.volta/bin"}, ":")
	before := []string{"PATH=" + path, "VOLTA_HOME=/opt/volta"}
	got := withToolchains(slices.Clone(before), home)
	if want := append(before, "RUSTUP_HOME="+home+"/.rustup", "NVM_DIR="+home+"/.nvm"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := withToolchains(nil, home); len(got) > 0 {
		t.Errorf("without PATH: %q", got)
	}
}

// TestPass: what the settings name takes precedence, and what the kernel would not accept is left.
func TestPass(t *testing.T) {
	t.Parallel()
	program := &schema.Program{Env: map[string]string{"TZ": "UTC"}}
	left := pass(program, []string{"TZ=Asia/Tokyo", "LC_ALL=C", "TOKEN=secret", "PATH=" + strings.Repeat("x", longestVariable+1), "EDITOR=\xff", "RUSTUP_HOME=/opt"})
	if !slices.Equal(left, []string{"PATH", "EDITOR"}) || len(program.Env) != 3 || program.Env["TZ"] != "UTC" || program.Env["LC_ALL"] != "C" || program.Env["RUSTUP_HOME"] != "/opt" {
		t.Errorf("left %q, has %q", left, program.Env)
	}
}
