package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
)

// The head mark is one line of fixed length: seq as 20 digits, the hash, and a CRC-32C of both in hexadecimal. It fits a
// sector and is overwritten in place. A mark with a wrong sum is ignored, so a torn one counts as none.
const (
	markName    = "head"
	markTextLen = segmentDigits + 1 + hexHashLen + 1
	markLen     = markTextLen + 8 + 1
)

// appendMark appends the line of h.
func appendMark(dst []byte, h Head) []byte {
	start := len(dst)
	// Leading zeros give every mark the same length, so that none leaves the end of a longer one behind.
	var digits [segmentDigits]byte
	s := strconv.AppendUint(digits[:0], h.Seq, 10)
	for range segmentDigits - len(s) {
		dst = append(dst, '0')
	}
	dst = append(dst, s...)
	dst = append(dst, ' ')
	dst = appendHash(dst, &h.Hash)
	dst = append(dst, ' ')
	sum := crc32.Checksum(dst[start:], crc32.MakeTable(crc32.Castagnoli))
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[sum>>shift&15])
	}
	return append(dst, '\n')
}

// parseMark reads exactly the form that appendMark writes: it encodes the result again and compares, including the sum.
func parseMark(b []byte) (Head, bool) {
	if len(b) != markLen {
		return Head{}, false
	}
	seq, err := strconv.ParseUint(string(b[:segmentDigits]), 10, 64)
	h := Head{Seq: seq}
	if err != nil || !decodeHash(&h.Hash, b[segmentDigits+1:markTextLen-1]) {
		return Head{}, false
	}
	return h, string(appendMark(nil, h)) == string(b)
}

// ReadMark returns the head mark of the journal in dir, or the zero Head if there is no valid one. A nil fsys means OSFS.
func ReadMark(fsys FS, dir string) (h Head, err error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	f, err := fsys.Open(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, nil
	}
	if err != nil {
		return Head{}, fmt.Errorf("read head mark: %w", err)
	}
	h, _, err = decodeMark(f)
	return h, errors.Join(err, f.Close())
}

// decodeMark returns the zero Head if there is no valid mark; note says why.
func decodeMark(f File) (h Head, note string, err error) {
	b := make([]byte, markLen+1) // one more, to detect a file that is too long
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Head{}, "", fmt.Errorf("read head mark: %w", err)
	}
	if n == 0 {
		// A start made the file, and no fsync followed.
		return Head{}, "", nil
	}
	h, ok := parseMark(b[:n])
	if !ok {
		return Head{}, "head mark is torn or damaged and was not used", nil
	}
	return h, "", nil
}
