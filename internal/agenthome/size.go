package agenthome

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// Size returns how much of the disk a directory takes with what is below it, in bytes, as far as it can be read. A file with several names
// counts once. It stops when done is closed, with what it has found.
func Size(dir string, done <-chan struct{}) (bytes int64) {
	type file struct{ device, number uint64 }
	seen := make(map[file]bool)
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		select {
		case <-done:
			return filepath.SkipAll
		default:
		}
		if err != nil {
			return nil // it is gone, or not this user's
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			bytes += info.Size()
			return nil
		}
		if st.Nlink > 1 && !entry.IsDir() {
			at := file{uint64(st.Dev), st.Ino} //nolint:unconvert // the types differ between platforms
			if seen[at] {
				return nil
			}
			seen[at] = true
		}
		const block = 512 // of st_blocks, on every system
		bytes += int64(st.Blocks) * block
		return nil
	})
	return bytes
}
