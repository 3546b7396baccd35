package schema

import "strings"

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
