// Package front finds the small program that starts in place of pwos what has to start fast: see cmd/pwos-front.
package front

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/promptware-os/pwos/internal/version"
)

// Name is the name of the program.
const Name = "pwos-front"

// patience bounds the question for its version.
const patience = 5 * time.Second

// Beside returns the path of the front beside this program, without symbolic links; "" if there is none of the same version.
func Beside() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return ""
	}
	return in(filepath.Dir(self))
}

func in(dir string) string {
	path := filepath.Join(dir, Name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = []string{} // no variable may change what it says
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != Version() {
		return ""
	}
	return path
}

// Version is what a front of this build prints with --version.
func Version() string { return Name + " " + version.Build() }
