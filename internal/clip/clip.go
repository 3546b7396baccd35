// Package clip shortens texts.
package clip

import "unicode/utf8"

// Text returns a text of at most size bytes: one that is longer ends, between two characters, with an ellipsis.
func Text(s string, size int) string {
	const ellipsis = "…"
	if len(s) <= size {
		return s
	}
	end := max(0, size-len(ellipsis))
	for end > 0 && end > size-len(ellipsis)-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
