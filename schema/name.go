package schema

import (
	"strings"
	"unicode"
)

// Hidden reports whether r must not stand in a name that is shown to people: nobody can see it, or it changes how what
// stands around it is shown, so that two names can look the same. Those are control and format characters (bidirectional
// controls, zero-width ones), separators of lines, what is ignored by default, and characters of private use, which look
// different everywhere. One that is not assigned yet may be a letter tomorrow, and is let pass.
func Hidden(r rune) bool {
	if r <= unicode.MaxASCII {
		return r < ' ' || r == unicode.MaxASCII
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

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
