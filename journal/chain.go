package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// unfinished is the reason for a segment that ends in the middle of a line and is not the last.
const unfinished = "the segment does not end with a line end, but another follows it"

// chainFault returns why r cannot follow h, or "".
func chainFault(h Head, r *Record) string {
	switch {
	case r.Seq <= h.Seq:
		return fmt.Sprintf("entry %d is where entry %d should be: it was repeated or moved", r.Seq, h.Seq+1)
	case r.Seq > h.Seq+1:
		return fmt.Sprintf("entry %d is where entry %d should be: entries were removed or moved", r.Seq, h.Seq+1)
	case r.Prev == h.Hash:
		return ""
	case h.Seq == 0:
		return "prev of the first entry is not zero"
	default:
		return fmt.Sprintf("prev is not the hash of entry %d: that entry was altered, or this one is from elsewhere", h.Seq)
	}
}

// isFault reports whether an error is about the content of a line, not about reading it.
func isFault(err error) bool { return errors.Is(err, errLayout) || errors.Is(err, errLongLine) }

// tornWrite reports whether a line that is not an entry was left by a write that a power cut
// interrupted: the file got its length, but blocks in it never got their data and read as NULs,
// which JSON never contains. No byte from such a line on can have been synced.
func tornWrite(line []byte) bool { return bytes.IndexByte(line, 0) >= 0 }

// beginsEntry reports whether the bytes after the last line end are the beginning of the entry that
// follows h: a torn line, not a hole or foreign data.
func beginsEntry(rest []byte, h Head) bool {
	want := fmt.Appendf(nil, `{"seq":%d,"prev":"%x"`, h.Seq+1, h.Hash[:])
	n := min(len(rest), len(want))
	return n > 0 && bytes.Equal(rest[:n], want[:n]) && !tornWrite(rest)
}

// A Hash is the SHA-256 of an entry's line, without its '\n'. The zero Hash precedes the first
// entry.
type Hash [sha256.Size]byte

const hexHashLen = 2 * sha256.Size

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// A Head is a place in the chain: an entry and the hash of its line. The zero Head precedes the
// first entry.
type Head struct {
	Seq  uint64
	Hash Hash
}

func hashLine(line []byte) Hash { return sha256.Sum256(line) }

// decodeHash takes the canonical form only, so that reading and writing a line are inverse to each other.
func decodeHash(h *Hash, s []byte) bool {
	if len(s) != hexHashLen {
		return false
	}
	// One test at the end instead of 64: a digit's value is below 16, anything else is above.
	bad := byte(0)
	for i := range h {
		hi, lo := hexValue[s[2*i]], hexValue[s[2*i+1]]
		bad |= hi | lo
		h[i] = hi<<4 | lo&0x0f
	}
	return bad < 0x10
}

const hexDigits = "0123456789abcdef"

// hexPairs are the two digits of each byte.
var hexPairs = func() (t [256][2]byte) {
	for i := range t {
		t[i] = [2]byte{hexDigits[i>>4], hexDigits[i&15]}
	}
	return t
}()

// appendHash appends the 64 digits of h. It runs for each entry, and hex.AppendEncode takes four times as long.
func appendHash(dst []byte, h *Hash) []byte {
	n := len(dst)
	dst = append(dst, make([]byte, hexHashLen)...)
	out := (*[hexHashLen]byte)(dst[n:])
	for i, b := range h {
		pair := &hexPairs[b]
		out[2*i], out[2*i+1] = pair[0], pair[1]
	}
	return dst
}

// hexValue maps lower-case digits to their values, all else to a value above 15.
var hexValue = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for v, c := range []byte(hexDigits) {
		t[c] = byte(v)
	}
	return t
}()

// A Chain checks lines of a journal from another source than its files.
type Chain struct {
	Head Head // of the last line; zero before the first
	rec  Record
}

// Add checks the next line, without its '
// ', and returns its entry, valid until the next call. If the line is wrong, it returns the reason, as a Finding of Verify
// has it, and the chain stays unchanged.
func (c *Chain) Add(line []byte) (*Record, string) {
	if err := ParseLine(line, &c.rec); err != nil {
		return nil, err.Error()
	}
	if reason := chainFault(c.Head, &c.rec); reason != "" {
		return nil, reason
	}
	c.rec.Hash = hashLine(line)
	c.Head = Head{Seq: c.rec.Seq, Hash: c.rec.Hash}
	return &c.rec, ""
}
