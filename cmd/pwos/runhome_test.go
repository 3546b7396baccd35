package main

import (
	"errors"
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

// TestToolDirs: directories of programs that PATH names below home can be read, and what their toolchain needs; not home itself, what lies
// elsewhere, and what touches a directory that the program has anyway.
func TestToolDirs(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	for _, dir := range []string{".cargo/bin", ".rustup", ".nvm/versions/node/v22/bin", "own/bin", "documents", "hidden/bin", "sdk/go/bin"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(home, dir), 0o700))
	}
	testkit.Must(t, os.Symlink("/usr/bin", filepath.Join(home, "bin")))
	var path []string
	for _, dir := range []string{".cargo/bin", ".nvm/versions/node/v22/bin", "own/bin", "documents", "hidden/bin", "bin", "missing/bin", "sdk/go/bin", ""} {
		path = append(path, filepath.Join(home, dir))
	}
	got := toolDirs(strings.Join(append(path, "/usr/bin", ""), ":"), home, []string{filepath.Join(home, "own/bin/x"), filepath.Join(home, "hidden"), filepath.Join(home, "sdk")})
	for i, dir := range got {
		got[i] = strings.TrimPrefix(dir, home+"/")
	}
	if want := []string{".cargo/bin", ".nvm/versions/node/v22/bin", ".rustup", ".nvm"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLasting: in a PATH, what a link of fnm leads to stands for it.
func TestLasting(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	testkit.Must(t, errors.Join(os.MkdirAll(dir+"/node/bin", 0o700), os.Mkdir(dir+"/fnm_multishells", 0o700), os.Symlink("../node", dir+"/fnm_multishells/1_2")))
	program := new(schema.Program)
	pass(program, withToolchains([]string{"PATH=/bin:" + dir + "/fnm_multishells/1_2/bin:" + dir + "/fnm_multishells/3/bin"}, dir))
	if got, want := program.Env["PATH"], "/bin:"+dir+"/node/bin:"+dir+"/fnm_multishells/3/bin"; got != want {
		t.Errorf("got %s, want %s", got, want)
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
