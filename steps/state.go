package steps

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// Ref names a content: the SHA-256 of a piece, or, for a file longer than one piece, that of the list of its pieces. The content of
// a file that Options.Secret names has a keyed hash instead, from which nobody without the key can guess it.
type Ref [sha256.Size]byte

func (r Ref) String() string { return hex.EncodeToString(r[:]) }

// State is what a path is at a moment. The zero State is nothing: no file, or one of a kind that is not covered.
type State struct {
	Mode   uint32 // kind and permission, as in st_mode
	Size   int64  // bytes of a file
	Ref    Ref    // content of a file, target of a link
	Secret bool   // the content is sealed
	Lost   bool   // the content could not be stored
}

// Exists reports whether there is something.
func (s State) Exists() bool { return s.Mode != 0 }

// IsDir reports whether it is a directory.
func (s State) IsDir() bool { return s.kind() == unix.S_IFDIR }

func (s State) kind() uint32  { return s.Mode & unix.S_IFMT }
func (s State) isFile() bool  { return s.kind() == unix.S_IFREG }
func (s State) isLink() bool  { return s.kind() == unix.S_IFLNK }
func (s State) perm() uint32  { return s.Mode & 0o7777 }
func (s State) content() bool { return s.isFile() || s.isLink() }

// Change is what a step did to a path. A directory that appears or goes has a change of its own, and so has everything in it.
type Change struct {
	Path          string // relative to the tree, with slashes; any bytes that a name may have
	Before, After State
}

// stamp is what stat says of an entry. Entries with equal stamps have equal content, unless the stamp was young when it was taken.
type stamp struct {
	ino          uint64
	size         int64
	ctime, mtime int64 // nanoseconds since the Unix epoch
	mode         uint32
}

// like reports whether stamps are equal except for the change time, which differs when another name of the file goes.
func (s stamp) like(other stamp) bool {
	s.ctime = other.ctime
	return s == other
}

// ref names a content that is not stored: with another stamp it is another.
func (s stamp) ref() Ref {
	var id []byte
	for _, n := range []int64{int64(s.ino), s.size, s.ctime, s.mtime} {
		id = binary.LittleEndian.AppendUint64(id, uint64(n))
	}
	return sha256.Sum256(id)
}

// item is an entry of a directory as it was at the last cut.
type item struct {
	name   string
	state  State
	stamp  stamp
	young  bool // it may have changed after it was read without another stamp
	linked bool // it has other names, in the tree or elsewhere
}
