package gitdirs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Bounds of what is read of an index.
const (
	maxIndex   = 64 << 20
	mostSought = 10_000
)

// isIndexOf reports whether a file of a directory is in an index with its number, size and times of change, which nobody can forge. It is
// false for an index in a format that git does not write by default.
func isIndexOf(index, dir string) bool {
	text, err := readRegular(index, maxIndex)
	const header, fixed = 12, 62 // bytes before the first entry, and before an entry's name
	if err != nil || len(text) < header || string(text[:4]) != "DIRC" {
		return false
	}
	if version := binary.BigEndian.Uint32(text[4:]); version != 2 && version != 3 {
		return false
	}
	count := min(binary.BigEndian.Uint32(text[8:]), mostSought)
	for text = text[header:]; count > 0 && len(text) > fixed; count-- {
		word := func(n int) uint32 { return binary.BigEndian.Uint32(text[4*n:]) }
		start := fixed
		if binary.BigEndian.Uint16(text[60:])&0x4000 != 0 { // extended
			start += 2
		}
		if len(text) <= start {
			return false
		}
		length := bytes.IndexByte(text[start:], 0)
		if length < 0 {
			return false
		}
		info, err := os.Lstat(filepath.Join(dir, string(text[start:start+length])))
		if err == nil && info.Mode().IsRegular() {
			st := info.Sys().(*syscall.Stat_t)
			sec, nsec := ctimeOf(st)
			if uint32(sec) == word(0) && uint32(nsec) == word(1) && uint32(info.ModTime().Unix()) == word(2) &&
				uint32(st.Dev) == word(4) && uint32(st.Ino) == word(5) && uint32(info.Size()) == word(9) {
				return true
			}
		}
		next := (start + length + 8) &^ 7 // at least one NUL
		if next > len(text) {
			return false
		}
		text = text[next:]
	}
	return false
}

// branches returns the names of all local branches. ok is false if they are kept in a way that is not known.
func branches(common string) (names []string, ok bool) {
	const most = 100_000
	heads := filepath.Join(common, "refs", "heads")
	if info, err := os.Lstat(heads); err != nil || !info.IsDir() {
		return nil, false
	}
	err := filepath.WalkDir(heads, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, heads+"/"))
		}
		if len(names) > most {
			return fs.ErrInvalid
		}
		return err
	})
	if err != nil {
		return nil, false
	}
	packed, err := readRegular(filepath.Join(common, "packed-refs"), maxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	for line := range strings.SplitSeq(string(packed), "\n") {
		if _, ref, found := strings.Cut(line, " refs/heads/"); found {
			names = append(names, ref)
		}
	}
	return names, len(names) <= most
}
