package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/schema"
)

// toolchain is a directory of a user's home with a toolchain. Its programs, to which PATH leads by bin, need dir.
type toolchain struct{ bin, dir, variable string }

// toolchains returns those that are known. With another HOME some programs do not find them without the variable. No directory here has
// credentials of its tool, as .cargo has.
func toolchains() []toolchain {
	return []toolchain{
		{".cargo/bin", ".rustup", "RUSTUP_HOME"},
		{".nvm", ".nvm", "NVM_DIR"},
		{".local/share/fnm", ".local/share/fnm", "FNM_DIR"},
		{".volta", ".volta", "VOLTA_HOME"},
		{".pyenv", ".pyenv", "PYENV_ROOT"},
		{".asdf", ".asdf", "ASDF_DATA_DIR"},
		{".local/share/mise", ".local/share/mise", "MISE_DATA_DIR"},
		{".sdkman", ".sdkman", "SDKMAN_DIR"},
		{"sdk", "sdk", ""}, // of go
		{".bun", ".bun", ""},
		{".deno", ".deno", ""},
		{".local/share/pnpm", ".local/share/pnpm", ""},
		{".local/bin", ".local/share/uv", ""},
		{".local/bin", ".local/share/pipx", ""},
		{".local/bin", ".local/share/claude", ""},
	}
}

// withToolchains adds the variables of the toolchains below home to which PATH leads, unless the environment has them. They
// grant nothing.
func withToolchains(environ []string, home string) []string {
	path := pathIn(environ)
	if last := lasting(path); last != path {
		path, environ = last, append([]string{"PATH=" + last}, environ...) // of two, the first counts
	}
	for _, t := range toolchains() {
		named := func(pair string) bool { return strings.HasPrefix(pair, t.variable+"=") }
		at := filepath.Join(home, t.dir)
		if t.variable == "" || !isDirectory(at) || slices.ContainsFunc(environ, named) || !t.leads(path, home) {
			continue
		}
		environ = append(environ, t.variable+"="+at)
	}
	return environ
}

// leads reports whether a PATH leads to the toolchain.
func (t toolchain) leads(path, home string) bool {
	bin := filepath.Join(home, t.bin)
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool { return dir == bin || strings.HasPrefix(dir, bin+"/") })
}

// pathIn returns the PATH of an environment.
func pathIn(environ []string) (path string) {
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			path = value
		}
	}
	return path
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// toolDirs returns the directories of programs below home, to which a PATH leads, and of the toolchains that they need, without symbolic
// links. Those that a list of other paths has, is in, or has something in, are left to that.
func toolDirs(path, home string, others []string) (dirs []string) {
	real, err := filepath.EvalSymlinks(home)
	if err != nil || real == "/" {
		return nil
	}
	var list []string
	for _, dir := range filepath.SplitList(path) {
		if base := filepath.Base(dir); base == "bin" || base == "shims" {
			list = append(list, dir)
		}
	}
	for _, t := range toolchains() {
		if t.leads(path, home) {
			list = append(list, filepath.Join(home, t.dir))
		}
	}
	for _, dir := range list {
		dir, err := filepath.EvalSymlinks(dir)
		touches := func(other string) bool { return inside(dir, other) || inside(other, dir) }
		if err != nil || !isDirectory(dir) || dir == real || !inside(dir, real) || slices.Contains(dirs, dir) || slices.ContainsFunc(others, touches) {
			continue
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// readTools lets a program read the toolchains of home where its sandbox shows it nothing there: a strict one, and one of another user.
func readTools(program *schema.Program, home string) {
	level := program.Sandbox.Named()
	if home == "" || level == "off" || level == "default" && os.Getuid() != 0 {
		return
	}
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err != nil || level == "default" && cfg.Agents.User == "" && program.User == nil { // an error is the kernel's to tell
		return
	}
	s := new(schema.Sandbox)
	if program.Sandbox != nil {
		*s = *program.Sandbox
	}
	others := slices.Concat(s.Read, s.Write, s.Hide)
	if program.Cwd != nil {
		others = append(others, *program.Cwd)
	}
	for _, path := range cfg.Agents.Hide { // as the kernel reads it
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		others = append(others, path)
	}
	s.Read = append(slices.Clip(s.Read), toolDirs(program.Env["PATH"], home, others)...)
	program.Sandbox = s
}

// lasting returns a PATH with what the links of fnm lead to, which it makes for each shell in a directory that agents do not see.
func lasting(path string) string {
	dirs := filepath.SplitList(path)
	for i, dir := range dirs {
		dirs[i] = lastingDir(dir)
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

func lastingDir(dir string) string {
	if strings.Contains(dir, "/fnm_multishells/") {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return real
		}
	}
	return dir
}
