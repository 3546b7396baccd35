// Package interpreters finds the programs that run other languages in tests.
package interpreters

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// Python returns the path of a Python 3.9 or later, or the reason why none was found. It is that of the interpreter itself: what is in
// PATH may be a script that takes longer than Python to find it.
func Python() (string, error) {
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", err
	}
	itself, err := exec.Command(path, "-c", "import sys; print(sys.executable); sys.exit(sys.version_info < (3, 9))").Output()
	if err != nil {
		return "", errors.New("python3 is older than 3.9")
	}
	return string(bytes.TrimSpace(itself)), nil
}

// Node returns the path of a Node that strips types, or the reason why none was found. It searches PATH, and the directory
// of test/hosts.
func Node() (string, error) {
	candidates := []string{"node"}
	if dir := os.Getenv("PWOS_HOSTS"); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "node_modules", ".bin", "node"))
	}
	if dir, err := os.UserCacheDir(); err == nil {
		candidates = append(candidates, filepath.Join(dir, "pwos-hosts", "node_modules", ".bin", "node"))
	}
	for _, name := range candidates {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.Command(path, "-p", "process.features.typescript").Output()
		if err == nil && string(bytes.TrimSpace(out)) == "strip" {
			return filepath.EvalSymlinks(path) // agents are started by paths without symbolic links
		}
	}
	return "", errors.New("no Node that strips types (22.18 or later) was found: PWOS_HOSTS=DIR names where `bash test/hosts/npm/install DIR` has put one")
}
