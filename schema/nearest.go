package schema

import (
	"iter"
	"strings"
)

// Nearest returns the one of names that name is most likely a misspelling of, "" where none is near. Case does not count.
func Nearest(name string, names iter.Seq[string]) (nearest string) {
	const most = 64 // bytes: what is longer is no misspelling
	if len(name) > most {
		return ""
	}
	name = strings.ToLower(name)
	best := min(1+len(name)/5, len(name)-1) + 1
	for other := range names {
		if d := distance(name, strings.ToLower(other)); d < best {
			best, nearest = d, other
		}
	}
	return nearest
}

// NearestType is Nearest among the syscalls that can be called, which a CAP code names too.
func NearestType(name string) string {
	for _, row := range Syscalls() {
		if row.Code != "" && strings.EqualFold(row.Code, name) {
			return row.Type
		}
	}
	return Nearest(name, func(yield func(string) bool) {
		for _, row := range Syscalls() {
			if !row.Internal && row.Type != name && !yield(row.Type) {
				return
			}
		}
	})
}

// distance is how many bytes have to be put in, left out or changed to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
