package confine

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// RootOnly returns the files and directories of the system that only user 0 may read, for Request.RootOnly. A kernel that is
// user 0 confines programs of that user, whom permissions do not stop. Deeper directories are those of single programs,
// which protect their secrets further up.
func RootOnly() []string {
	return slices.Concat(
		rootOnlyIn("/etc", 4), rootOnlyIn("/var", 3), rootOnlyIn("/boot", 2), rootOnlyIn("/usr/local/etc", 2), rootOnlyIn("/sys/kernel", 1),
	)
}

func rootOnlyIn(dir string, depth int) (list []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what cannot be listed cannot be read
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := entry.Info()
		if err != nil {
			continue
		}
		const use, read = 0o005, 0o004 // rights of others to a directory and to a file
		switch mode := info.Mode(); {
		case mode.IsDir() && mode.Perm()&use == 0 && ofRoot(info), mode.IsRegular() && mode.Perm()&read == 0 && ofRoot(info):
			list = append(list, path)
		case mode.IsDir() && depth > 1:
			list = append(list, rootOnlyIn(path, depth-1)...)
		}
	}
	return list
}

// ofRoot reports whether user 0 without privileges may read a file: as its owner, or as a member of group 0.
func ofRoot(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 && info.Mode().Perm()&0o400 != 0 || st.Gid == 0 && info.Mode().Perm()&0o040 != 0)
}
