package agenthome

import (
	"io/fs"
	"os"
	"syscall"
)

// Bounds of a look at a directory, which an agent may have filled: of the memory that it takes, and of the files that it holds open.
const (
	listed   = 1024    // entries of a directory at once
	mostSeen = 1 << 20 // files with several names; of more, each name counts
	deepest  = 200     // directories in one another
)

// Size returns how much of the disk a directory takes with what is below it, in bytes, as far as it can be read. A file with several names
// counts once. No link is followed. It stops when done is closed, with what it has found.
func Size(dir string, done <-chan struct{}) int64 {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0 // it is gone, or not this user's
	}
	l := look{done: done, seen: make(map[inode]bool)}
	l.in(root, 0)
	return l.bytes
}

type inode struct{ device, number uint64 }

type look struct {
	done  <-chan struct{}
	seen  map[inode]bool
	bytes int64
}

// in looks at a directory, and closes it.
func (l *look) in(root *os.Root, depth int) {
	defer func() { _ = root.Close() }() // only read
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	if info, err := dir.Stat(); err == nil && !l.ended() {
		l.add(info)
	}
	for {
		entries, err := dir.ReadDir(listed)
		for _, entry := range entries {
			if l.ended() {
				return
			}
			if entry.IsDir() {
				if below, err := root.OpenRoot(entry.Name()); err == nil && depth < deepest {
					l.in(below, depth+1)
				} else if err == nil {
					_ = below.Close()
				}
			} else if info, err := root.Lstat(entry.Name()); err == nil {
				l.add(info)
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *look) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// add counts a file or a directory.
func (l *look) add(info fs.FileInfo) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		l.bytes += info.Size()
		return
	}
	if st.Nlink > 1 && !info.IsDir() {
		at := inode{uint64(st.Dev), st.Ino} //nolint:unconvert // the types differ between platforms
		if l.seen[at] {
			return
		}
		if len(l.seen) < mostSeen {
			l.seen[at] = true
		}
	}
	const block = 512 // of st_blocks, on every system
	l.bytes += int64(st.Blocks) * block
}
