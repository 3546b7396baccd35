package testkit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// EachFile calls see with the path of each directory and file below some directories, and with the content of the regular files.
// A kernel may run on them: what it removes meanwhile is skipped.
func EachFile(t testing.TB, see func(path string, content []byte), dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			var content []byte
			if err == nil && entry.Type().IsRegular() {
				content, err = os.ReadFile(path)
			}
			if path != dir && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				see(path, content)
			}
			return err
		}))
	}
}

// FilesWith returns the files below some directories that contain a text, as EachFile shows them.
func FilesWith(t testing.TB, text string, dirs ...string) (found []string) {
	t.Helper()
	EachFile(t, func(path string, content []byte) {
		if bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
	}, dirs...)
	return found
}
