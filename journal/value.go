package journal

import "unicode/utf8"

// maxDepth bounds how deep values may nest. A frame nests 64 deep at most (PROTOCOL 2), an outcome wraps its data.
const maxDepth = 128

// plainByte marks the bytes that stand for themselves in a JSON string: ASCII but controls, the quote, the backslash.
var plainByte = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// skipValue returns the index after the strict JSON value that begins at b[i], or -1 where there is none. White space
// inside it may be anything but a line feed; a value never ends a line early. It keeps no state, so a line is scanned
// the same way when it is written and when it is read.
func skipValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return skipString(b, i)
	case '{':
		return skipObject(b, i, depth)
	case '[':
		return skipArray(b, i, depth)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

// skipObject wants each name to be a string, and does not mind one that comes twice: the message was decoded strictly
// before it got here, and what the kernel adds to it is the kernel's.
func skipObject(b []byte, i, depth int) int {
	if i = skipBlank(b, i+1); at(b, i) == '}' {
		return i + 1
	}
	for {
		if at(b, i) != '"' {
			return -1
		}
		if i = skipString(b, i); i < 0 {
			return -1
		}
		if i = skipBlank(b, i); at(b, i) != ':' {
			return -1
		}
		if i = skipValue(b, skipBlank(b, i+1), depth+1); i < 0 {
			return -1
		}
		i = skipBlank(b, i)
		switch at(b, i) {
		case '}':
			return i + 1
		case ',':
			i = skipBlank(b, i+1)
		default:
			return -1
		}
	}
}

func skipArray(b []byte, i, depth int) int {
	if i = skipBlank(b, i+1); at(b, i) == ']' {
		return i + 1
	}
	for {
		if i = skipValue(b, i, depth+1); i < 0 {
			return -1
		}
		i = skipBlank(b, i)
		switch at(b, i) {
		case ']':
			return i + 1
		case ',':
			i = skipBlank(b, i+1)
		default:
			return -1
		}
	}
}

// skipString wants valid UTF-8: RFC 8259 section 8.1. Escaped surrogates may stand alone, as the grammar has it.
func skipString(b []byte, i int) int {
	for i++; ; {
		for i < len(b) && plainByte[b[i]] {
			i++
		}
		switch c := at(b, i); {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = skipEscape(b, i); i < 0 {
				return -1
			}
		case c < utf8.RuneSelf: // a control character, or the end
			return -1
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n <= 1 {
				return -1
			}
			i += n
		}
	}
}

func skipEscape(b []byte, i int) int {
	switch at(b, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if c := at(b, k); hexValue[c] > 15 && (c < 'A' || c > 'F') {
				return -1
			}
		}
		return i + 6
	default:
		return -1
	}
}

// skipNumber returns -1 for anything that no other value begins like either.
func skipNumber(b []byte, i int) int {
	if at(b, i) == '-' {
		i++
	}
	// A number of several digits does not begin with zero.
	if at(b, i) == '0' {
		i++
	} else if i = skipDigits(b, i); i < 0 {
		return -1
	}
	if at(b, i) == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if at(b, i)|0x20 == 'e' {
		i++
		if c := at(b, i); c == '+' || c == '-' {
			i++
		}
		return skipDigits(b, i)
	}
	return i
}

// skipDigits wants at least one.
func skipDigits(b []byte, i int) int {
	start := i
	for c := at(b, i); c >= '0' && c <= '9'; c = at(b, i) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func skipWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func skipBlank(b []byte, i int) int {
	for c := at(b, i); c == ' ' || c == '\t' || c == '\r'; c = at(b, i) {
		i++
	}
	return i
}

// at is b[i], or NUL past the end: no JSON token begins with NUL, so ends need no test of their own.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}
