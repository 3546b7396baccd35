package journal

import (
	"fmt"
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

// segmentPath is the path of the segment whose first entry is first.
func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d%s", segmentDigits, first, segmentSuffix))
}

// segmentFirst reads a segment's first seq from its name. Names of any other form belong to somebody else.
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
