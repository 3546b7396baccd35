package steps

import (
	"bytes"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// mostText is the length of the longest text whose lines are merged.
const mostText = 4 << 20

// isText reports whether a content is merged and shown by lines.
func isText(content []byte) bool {
	return len(content) <= mostText && bytes.IndexByte(content, 0) < 0 && utf8.Valid(content)
}

// merged returns a text with what leads from base to each of two others. It returns false if both change the same lines, or insert at
// the same place.
func merged(base, one, other []byte) ([]byte, bool) {
	if !isText(base) || !isText(one) || !isText(other) {
		return nil, false
	}
	x, y := udiff.Lines(string(base), string(one)), udiff.Lines(string(base), string(other))
	var all []udiff.Edit
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] == y[0]:
			all, x, y = append(all, x[0]), x[1:], y[1:]
		case before(x[0], y[0]):
			all, x = append(all, x[0]), x[1:]
		case before(y[0], x[0]):
			all, y = append(all, y[0]), y[1:]
		default:
			return nil, false
		}
	}
	out, err := udiff.ApplyBytes(base, append(append(all, x...), y...))
	return out, err == nil
}

// before reports whether an edit ends before the other begins.
func before(x, y udiff.Edit) bool {
	return x.End < y.Start || x.End == y.Start && (x.Start < x.End || y.Start < y.End)
}
