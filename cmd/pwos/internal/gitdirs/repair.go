package gitdirs

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// repair makes a repository one that git finds, if it was one: git would otherwise take what is around it for a repository, which an agent may
// have made.
func (k *kept) repair() error {
	for _, dir := range slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(k.Heads)), k.Parts...))) { // first those that others are in
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue // the user has removed it
		}
		const whole = 0o700
		if mode := info.Mode().Perm(); mode&whole != whole {
			if err := os.Chmod(dir, mode|whole); err != nil {
				return err
			}
		}
	}
	for dir, before := range k.Heads {
		head := filepath.Join(dir, "HEAD")
		if _, err := os.Lstat(dir); err != nil {
			continue
		}
		info, err := os.Lstat(head)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o600 != 0o600 {
			err = os.Chmod(head, info.Mode().Perm()|0o600)
		}
		if err == nil && isHead(head) {
			continue
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			if err := os.RemoveAll(head); err != nil {
				return err
			}
		}
		if err := os.WriteFile(head, []byte(before), 0o666); err != nil {
			return err
		}
		if err := asParent(head); err != nil {
			return err
		}
	}
	return nil
}

// isHead reports whether git takes a file for the HEAD of a repository.
func isHead(path string) bool {
	if to, err := os.Readlink(path); err == nil {
		return strings.HasPrefix(to, "refs/")
	}
	text, err := readRegular(path, maxConfig)
	if err != nil {
		return false
	}
	if ref, is := strings.CutPrefix(string(text), "ref:"); is {
		return strings.HasPrefix(strings.TrimLeft(ref, " \t"), "refs/")
	}
	return objectName().Match(text)
}

// objectName begins with the name of an object.
var objectName = pattern(`^[0-9a-f]{40}`)
