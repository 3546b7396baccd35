package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Twenty digits hold any uint64, so that names sort as their numbers do.
const (
	segmentSuffix = ".ndjson"
	segmentDigits = 20
)

// segmentPath returns the path of the segment whose first entry is first.
func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d%s", segmentDigits, first, segmentSuffix))
}

// segmentFirst parses a segment's first seq from its name. Names of any other form are ignored.
func segmentFirst(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != segmentDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil && first > 0
}

// listSegments returns the first seq of each segment in dir, ascending.
func listSegments(fsys FS, dir string) ([]uint64, error) {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var firsts []uint64
	for _, name := range names {
		if first, ok := segmentFirst(name); ok {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// seekStep is the distance in bytes at which a search stops; the rest is read.
const seekStep = 64 << 10

// seekEntry returns the offset of a line of f whose entry is not after seq: the start of the file, or a line not far before
// seq. Entries ascend, so it searches by bisection. A probe that finds no line counts as one that is too far.
func seekEntry(f File, seq uint64) (int64, error) {
	hi, err := f.Size()
	if err != nil {
		return 0, err
	}
	lo := int64(0)
	buf := make([]byte, seekStep)
	// At lo starts a line whose entry is not after seq, or the file. A probe at hi found a later entry, or nothing.
	for hi-lo > seekStep {
		mid := lo + (hi-lo)/2
		n, err := f.ReadAt(buf, mid)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		start, found := firstEntry(buf[:n])
		if found > 0 && found <= seq {
			lo = mid + int64(start)
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// firstEntry finds the first line that starts in b and returns its index and seq; seq is 0 if there is none. Only the start
// of the line must be in b; the rest is checked when it is read.
func firstEntry(b []byte) (start int, seq uint64) {
	start = bytes.IndexByte(b, '\n') + 1
	if start == 0 {
		return 0, 0
	}
	c := cursor{b: b, i: start}
	c.word(`{"seq":`)
	seq = c.uint()
	c.word(`,`)
	if c.bad {
		return 0, 0
	}
	return start, seq
}
