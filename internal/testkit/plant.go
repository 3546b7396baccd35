package testkit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var changedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)

// Plant patches copies, in dir, of the files below root that a patch changes. It returns the file for -overlay with which
// the go command builds the copies.
func Plant(root, file, dir string) (overlay string, err error) {
	patch, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var replace []string // members of a JSON object; the paths have no characters that Go and JSON quote differently
	for _, m := range changedFile.FindAllSubmatch(patch, -1) {
		name := string(m[1])
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		replace = append(replace, fmt.Sprintf("%q:%q", filepath.Join(root, name), filepath.Join(dir, name)))
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // not in a repository, so the files are plain
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("git apply: %w\n%s", err, out)
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace":{%s}}`, strings.Join(replace, ",")), 0o600)
}
