package journal

import (
	"bytes"
	"errors"
	"fmt"
)

// unfinished is what is wrong with a segment that ends in the middle of a line and is not the last.
const unfinished = "the segment does not end with a line end, but another follows it"

// chainFault says why r cannot follow h, or nothing where it does.
func chainFault(h Head, r *Record) string {
	switch {
	case r.Seq <= h.Seq:
		return fmt.Sprintf("entry %d stands where entry %d should: it was repeated or moved", r.Seq, h.Seq+1)
	case r.Seq > h.Seq+1:
		return fmt.Sprintf("entry %d stands where entry %d should: entries were removed or moved", r.Seq, h.Seq+1)
	case r.Prev == h.Hash:
		return ""
	case h.Seq == 0:
		return "prev of the first entry is not zero"
	default:
		return fmt.Sprintf("prev is not the hash of entry %d: that entry was altered, or this one is from elsewhere", h.Seq)
	}
}

// isFault tells errors about what a line says from errors of reading it.
func isFault(err error) bool { return errors.Is(err, errLayout) || errors.Is(err, errLongLine) }

// tornWrite says whether a line that is no entry is a write that a power cut left unfinished: the file got its length,
// but blocks in it never got their data and read as NULs, which JSON never contains. Nothing from such a line on can
// have been synced.
func tornWrite(line []byte) bool { return bytes.IndexByte(line, 0) >= 0 }

// beginsEntry says whether the bytes after the last line end are the beginning of the entry that follows h: a line that
// was torn, and not a hole or what somebody else wrote there.
func beginsEntry(rest []byte, h Head) bool {
	want := fmt.Appendf(nil, `{"seq":%d,"prev":"%x"`, h.Seq+1, h.Hash[:])
	n := min(len(rest), len(want))
	return n > 0 && bytes.Equal(rest[:n], want[:n]) && !tornWrite(rest)
}
