package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

const (
	folderPrefix = "o-"    // begins the name of an origin's folder; its hash follows
	newPrefix    = ".new-" // begins the name of a file that is being written
	maxName      = 255     // bytes, as file systems have it
)

// folderOf returns the folder of an origin, "" for the kernel's own, which needs none.
func (s *Store) folderOf(origin string) string {
	if origin == s.origin {
		return ""
	}
	sum := sha256.Sum256([]byte(origin))
	return folderPrefix + hex.EncodeToString(sum[:16])
}

func isFolder(name string) bool {
	rest, ok := strings.CutPrefix(name, folderPrefix)
	return ok && len(rest) == 32 && strings.Trim(rest, "0123456789abcdef") == ""
}

// pointer is the reference to a blob. There is one for each: the absolute path as the store's directory is written, and no
// other spelling of it (its JSON is BlobPointer.Append's).
func (s *Store) pointer(folder, name string) schema.BlobPointer {
	return schema.BlobPointer{Scheme: "file", Path: filepath.Join(s.dir, folder, name)}
}

// parse reads a reference of an origin as a folder, with the name of a file in it. It looks at nothing but the text.
func (s *Store) parse(origin string, p schema.BlobPointer) (folder, name string, err error) {
	if p.Scheme != "file" || p.Authority != "" || p.Query != "" || p.Fragment != "" {
		return "", "", invalid("the reference must have the scheme file and a path, nothing else")
	}
	if p.Path != filepath.Clean(p.Path) || strings.ContainsRune(p.Path, 0) {
		return "", "", invalid("the reference's path must be absolute, without . and .. and doubled slashes")
	}
	rest, inside := strings.CutPrefix(p.Path, s.dir+"/")
	if !inside {
		return "", "", s.outside()
	}
	folder, name, nested := strings.Cut(rest, "/")
	if !nested {
		folder, name = "", rest
	}
	// A folder is no blob, nor is there a way to ask whether an origin has one.
	if folder != s.folderOf(origin) || folder == "" && isFolder(name) || name[0] == '.' || len(name) > maxName || strings.Contains(name, "/") {
		return "", "", missing()
	}
	return folder, name, nil
}
