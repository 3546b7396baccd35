// Package replace writes a file as a whole: a reader sees the old text or the new one, also after a crash.
package replace

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// File gives a file a new text, which is on disk when it returns. A new file gets exactly this mode; one that is there keeps its own.
func File(path string, text []byte, mode fs.FileMode) error {
	return renameio.WriteFile(path, text, mode, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(mode))
}
