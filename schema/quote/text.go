package quote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Control reports whether a terminal may interpret r instead of displaying it: control and format characters, and line
// separators.
func Control(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// Hidden reports whether r must not be in a displayed name, because it is invisible or changes how its neighbours are
// displayed, so that two names can look the same. These are control and format characters (bidirectional controls,
// zero-width characters), line separators, default-ignorable characters, and private-use characters. Unassigned
// characters are allowed, because a later Unicode version may make them letters.
func Hidden(r rune) bool {
	if r <= unicode.MaxASCII {
		return r < ' ' || r == unicode.MaxASCII
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Rune returns the escape of a character: \u and four hexadecimal digits, or \U and eight. The number of digits is fixed,
// so that a digit after the escape is not read as a part of it.
func Rune(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Text returns text with each control character replaced by its escape. Different texts stay different: a backslash
// before an escape, or before what reads as one, is doubled. All others stay.
func Text(text string) string {
	if !strings.ContainsFunc(text, Control) && !strings.Contains(text, `\u`) && !strings.Contains(text, `\U`) {
		return text
	}
	var b strings.Builder
	slashes := 0 // just before the present character
	for i, r := range text {
		if r == '\\' {
			slashes++
			continue
		}
		if Control(r) || escapes(text[i:]) {
			slashes *= 2
		}
		b.WriteString(strings.Repeat(`\`, slashes))
		slashes = 0
		if Control(r) {
			b.WriteString(Rune(r))
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteString(strings.Repeat(`\`, slashes))
	return b.String()
}

// escapes reports whether a backslash before text would make an escape of its beginning.
func escapes(text string) bool {
	digits := map[byte]int{'u': 4, 'U': 8}[text[0]]
	return digits > 0 && len(text) > digits && strings.Trim(text[1:1+digits], "0123456789abcdefABCDEF") == ""
}

// JSON returns a JSON text with its control characters escaped as JSON does, so that it still is that text.
func JSON(raw string) string {
	if !strings.ContainsFunc(raw, Control) {
		return raw
	}
	var b strings.Builder
	for len(raw) > 0 {
		r, size := utf8.DecodeRuneInString(raw)
		switch {
		case !Control(r):
			b.WriteString(raw[:size])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b.WriteString(Rune(high) + Rune(low))
		default:
			b.WriteString(Rune(r))
		}
		raw = raw[size:]
	}
	return b.String()
}
