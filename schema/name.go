package schema

import (
	"iter"
	"strings"
)

// ValidType reports whether s is a message type in dot notation, Domain.Action (MESSAGE 4.4.1).
func ValidType(s string) bool {
	domain, action, ok := strings.Cut(s, ".")
	return ok && pascal(domain) && pascal(action)
}

// pascal reports whether s is an ASCII capital letter followed by ASCII letters or digits.
func pascal(s string) bool {
	if s == "" || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Nearest returns the element of names with the smallest edit distance to name, "" if none is close. It ignores
// case.
func Nearest(name string, names iter.Seq[string]) (nearest string) {
	const most = 64 // bytes; a longer name has no suggestion
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

// NearestType returns the Nearest of the callable syscalls and their CAP codes.
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

// distance returns the Levenshtein distance of a and b, in bytes.
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
