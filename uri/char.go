package uri

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lookalikes are characters that Unicode NFKC normalizes to a dot, a slash or a backslash, or to a text with one of them,
// or that look like one: the ideographic full stops, which host names treat as dots, and the fraction, division,
// box-drawing and mathematical slashes. Letters are not included, such as the Japanese no.
var lookalikes = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x2024, 0x2026, 1},
		{0x2044, 0x2044, 1},
		{0x2100, 0x2101, 1},
		{0x2105, 0x2106, 1},
		{0x2215, 0x2216, 1},
		{0x2488, 0x249b, 1},
		{0x2571, 0x2572, 1},
		{0x27cb, 0x27cb, 1},
		{0x27cd, 0x27cd, 1},
		{0x29f5, 0x29f5, 1},
		{0x29f8, 0x29f9, 1},
		{0x3002, 0x3002, 1},
		{0x33c2, 0x33c2, 1},
		{0x33c7, 0x33c7, 1},
		{0x33d8, 0x33d8, 1},
		{0xfe19, 0xfe19, 1},
		{0xfe30, 0xfe30, 1},
		{0xfe52, 0xfe52, 1},
		{0xfe68, 0xfe68, 1},
		{0xff0e, 0xff0f, 1},
		{0xff3c, 0xff3c, 1},
		{0xff61, 0xff61, 1},
	},
	R32: []unicode.Range32{{0x1f100, 0x1f100, 1}},
}

// readable reports whether text is UTF-8 and consists of characters that a name may have.
func readable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unfit)
}

func unfit(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f || r == '\\'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, lookalikes)
}

// plain reports whether b is an unreserved character, which must not be encoded (RFC 3986 2.3).
func plain(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-._~", b) >= 0
}

// pathByte reports whether b may be in a segment without encoding (RFC 3986 3.3).
func pathByte(b byte) bool { return plain(b) || strings.IndexByte("!$&'()*+,;=:@", b) >= 0 }

const digits = "0123456789ABCDEF"

// appendEncoded appends text, and percent-encodes the bytes that a segment may not have.
func appendEncoded(dst []byte, text string) []byte {
	for i := range len(text) {
		if b := text[i]; pathByte(b) {
			dst = append(dst, b)
		} else {
			dst = append(dst, '%', digits[b>>4], digits[b&15])
		}
	}
	return dst
}

// hex decodes the two digits after a percent sign.
func hex(text string) (byte, bool) {
	if len(text) < 2 {
		return 0, false
	}
	high, ok := nibble(text[0])
	low, both := nibble(text[1])
	return high<<4 | low, ok && both
}

func nibble(b byte) (byte, bool) {
	switch {
	case '0' <= b && b <= '9':
		return b - '0', true
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10, true
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}
