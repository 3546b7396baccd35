package steps

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// gitPart says what a file below a .git directory is for an undo.
type gitPart uint8

const (
	noGit     gitPart = iota
	gitObject         // never removed: a commit that was made since may need it
	gitIndex          // a table of files, merged by entry
	gitLog            // the past of a reference: what was added since stays
	gitLock           // of a command that runs: never restored
	gitNote           // what a command leaves for the next one: left as it is
	gitOther          // references and settings: values, whose conflicts hold back no file of the worktree
)

// gitPartOf returns what a path is.
func gitPartOf(path string) gitPart {
	rest, ok := strings.CutPrefix(path, ".git/")
	if !ok {
		if _, rest, ok = strings.Cut(path, "/.git/"); !ok {
			return noGit
		}
	}
	if strings.HasSuffix(rest, ".lock") {
		return gitLock
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts { // those of a submodule or a worktree are deeper
		switch last := i == len(parts)-1; part {
		case "objects":
			return gitObject
		case "logs":
			return gitLog
		case "refs":
			return gitOther
		case "index":
			if last {
				return gitIndex
			}
		case "COMMIT_EDITMSG", "FETCH_HEAD", "gc.log", "gc.pid":
			if last {
				return gitNote
			}
		}
	}
	return gitOther
}

// gitEntry is a file in git's index: its mode and object, and flags without the length of the name.
type gitEntry struct {
	stat  []byte // times, device, inode, mode, owner, size
	id    []byte
	flags uint16
	more  uint16
	name  string
}

const (
	statLength = 40
	modeAt     = 24 // of the mode in stat
	extended   = 0x4000
	nameLength = 0x0fff
)

// same reports whether entries say the same of a file, whatever stat said when they were made.
func (e gitEntry) same(other gitEntry) bool {
	return e.name == other.name && bytes.Equal(e.id, other.id) && e.flags == other.flags && e.more == other.more &&
		(e.stat == nil) == (other.stat == nil) && (e.stat == nil || bytes.Equal(e.stat[modeAt:modeAt+4], other.stat[modeAt:modeAt+4]))
}

// readIndex reads an index of versions 2 to 4, and returns false for what it does not know.
func readIndex(text []byte) (list []gitEntry, hash int, ok bool) {
	for _, hash = range []int{sha1.Size, sha256.Size} {
		if list, ok = readIndexOf(text, hash); ok {
			return list, hash, true
		}
	}
	return nil, 0, false
}

func readIndexOf(text []byte, hash int) (list []gitEntry, ok bool) {
	if len(text) < 12+hash || string(text[:4]) != "DIRC" {
		return nil, false
	}
	end := len(text) - hash
	if sum := text[end:]; !bytes.Equal(sum, checksum(text[:end], hash)) && !bytes.Equal(sum, make([]byte, hash)) {
		return nil, false
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil, false
	}
	b, previous := text[12:end], ""
	for range count {
		fixed := statLength + hash + 2
		if len(b) < fixed {
			return nil, false
		}
		e := gitEntry{stat: b[:statLength], id: b[statLength : statLength+hash], flags: binary.BigEndian.Uint16(b[statLength+hash:]) &^ nameLength}
		if e.flags&extended != 0 {
			if len(b) < fixed+2 {
				return nil, false
			}
			e.more = binary.BigEndian.Uint16(b[fixed:])
			fixed += 2
		}
		rest := b[fixed:]
		if version == 4 {
			strip, size := offset(rest)
			if size == 0 || strip > len(previous) {
				return nil, false
			}
			rest, previous = rest[size:], previous[:len(previous)-strip]
			fixed += size
		} else {
			previous = ""
		}
		zero := bytes.IndexByte(rest, 0)
		if zero < 0 {
			return nil, false
		}
		e.name = previous + string(rest[:zero])
		previous = e.name
		length := fixed + zero + 1
		if version < 4 {
			length = (fixed + zero + 8) &^ 7
		}
		if length > len(b) {
			return nil, false
		}
		list, b = append(list, e), b[length:]
	}
	for len(b) >= 8 { // extensions: those in lower case must be understood
		size := binary.BigEndian.Uint32(b[4:])
		if b[0] >= 'a' || uint64(size) > uint64(len(b)-8) {
			return nil, false
		}
		b = b[8+size:]
	}
	return list, len(b) == 0
}

// offset reads a number as git packs it.
func offset(b []byte) (n, size int) {
	for i := 0; i < len(b) && i < 4; i++ {
		n = n<<7 | int(b[i]&0x7f)
		if b[i]&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}

func checksum(text []byte, hash int) []byte {
	if hash == sha1.Size {
		sum := sha1.Sum(text)
		return sum[:]
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// writeIndex writes an index without extensions, which git makes again.
func writeIndex(list []gitEntry, hash int) []byte {
	version := uint32(2)
	if slices.ContainsFunc(list, func(e gitEntry) bool { return e.flags&extended != 0 }) {
		version = 3
	}
	b := append([]byte("DIRC"), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[4:], version)
	binary.BigEndian.PutUint32(b[8:], uint32(len(list)))
	for _, e := range list {
		begin := len(b)
		b = append(append(b, e.stat...), e.id...)
		b = binary.BigEndian.AppendUint16(b, e.flags|uint16(min(len(e.name), nameLength)))
		if e.flags&extended != 0 {
			b = binary.BigEndian.AppendUint16(b, e.more)
		}
		b = append(b, e.name...)
		b = append(b, make([]byte, 8-(len(b)-begin)%8)...)
	}
	return append(b, checksum(b, hash)...)
}

// mergedIndex returns an index as it is now without what a step did to it. What was changed of a name since stays, in all its stages, of
// which an index has either the one that is merged or those that are not. It returns false where a file would be in a place of a directory.
func mergedIndex(after, now, before []byte) ([]byte, bool) {
	var names [3]map[string][]gitEntry
	var hashes [3]int
	for i, text := range [][]byte{after, now, before} {
		list, hash, ok := readIndex(text)
		if !ok || i > 0 && hash != hashes[0] {
			return nil, false
		}
		hashes[i], names[i] = hash, make(map[string][]gitEntry, len(list))
		for _, e := range list { // the stages of a name are in their order
			names[i][e.name] = append(names[i][e.name], e)
		}
	}
	was, is, then := names[0], names[1], names[2]
	same := func(a, b []gitEntry) bool { return slices.EqualFunc(a, b, gitEntry.same) }
	for _, all := range []map[string][]gitEntry{was, then} {
		for name := range all {
			if old := then[name]; same(is[name], was[name]) && !same(was[name], old) {
				delete(is, name)
				for _, e := range old {
					stat := make([]byte, statLength) // git looks at the file again
					copy(stat[modeAt:], e.stat[modeAt:modeAt+4])
					e.stat = stat
					is[name] = append(is[name], e)
				}
			}
		}
	}
	var out []gitEntry
	for _, name := range slices.Sorted(maps.Keys(is)) {
		for dir := name; ; {
			at := strings.LastIndexByte(dir, '/')
			if at < 0 {
				break
			}
			if dir = dir[:at]; len(is[dir]) > 0 {
				return nil, false
			}
		}
		out = append(out, is[name]...)
	}
	return writeIndex(out, hashes[1]), true
}
