// Package replace writes a file atomically: a reader finds the old text or the new one, also after a crash.
package replace

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// File replaces the text of a file, durably. A new file gets exactly this mode; an existing one keeps its mode.
func File(path string, text []byte, mode fs.FileMode) error {
	return renameio.WriteFile(path, text, mode, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(mode))
}
