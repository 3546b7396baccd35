package schema

import (
	"strings"
	"unicode/utf8"
)

// The functions of this file recognise the frames that nearly all are: strict JSON with whole numbers, no escape in a name, none
// by number in a text, and objects of few members. They find the members on the way, and cost half of what the library does.
// They accept nothing that the library would not; what they do not accept is for the library to judge.

// fewMembers is how many members an object may have here: few enough to compare every name with every other.
const fewMembers = 16

// plainMember is where a member stands in its text: its name without the quotes, its value.
type plainMember struct{ name, nameEnd, value, valueEnd int32 }

// plainObject is a scanned object.
type plainObject struct {
	members [fewMembers]plainMember
	count   int
}

// scanLine reads line as one plain object, white space around it. False says nothing about line.
func (o *plainObject) scanLine(line []byte) bool {
	i := skipSpace(line, 0)
	if i == len(line) || line[i] != '{' {
		return false
	}
	i = o.scan(line, i, MaxDepth)
	return i > 0 && skipSpace(line, i) == len(line)
}

// scan reads the object that begins at b[i] and returns the index after it, or -1 where it is not plain. depth is how many
// arrays and objects it may have open, itself counted.
func (o *plainObject) scan(b []byte, i, depth int) int {
	o.count = 0
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for o.count < fewMembers {
		m := &o.members[o.count]
		m.name = int32(i + 1)
		if i = plainString(b, i, true); i < 0 {
			return -1
		}
		m.nameEnd = int32(i - 1)
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' || o.has(b, b[m.name:m.nameEnd]) {
			return -1
		}
		i = skipSpace(b, i+1)
		m.value = int32(i)
		if i = plainValue(b, i, depth-1); i < 0 {
			return -1
		}
		m.valueEnd = int32(i)
		o.count++
		var more bool
		if i, more = plainNext(b, i, '}'); !more {
			return i
		}
	}
	return -1
}

// plainNext reads what follows a member or an element: a comma, and where the next one begins, or the end, and the index after
// it; -1 where it is neither.
func plainNext(b []byte, i int, end byte) (next int, more bool) {
	i = skipSpace(b, i)
	switch {
	case i < len(b) && b[i] == ',':
		return skipSpace(b, i+1), true
	case i < len(b) && b[i] == end:
		return i + 1, false
	}
	return -1, false
}

// has reports whether a member of that name was read before.
func (o *plainObject) has(b, name []byte) bool {
	for k := range o.count {
		if m := &o.members[k]; string(b[m.name:m.nameEnd]) == string(name) {
			return true
		}
	}
	return false
}

// member returns one member of a scanned object of b.
func (o *plainObject) member(b []byte, k int) (name, value []byte) {
	m := &o.members[k]
	return b[m.name:m.nameEnd], b[m.value:m.valueEnd]
}

// plainValue returns the index after the value that begins at b[i], or -1 where it is not plain.
func plainValue(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		return plainString(b, i, false)
	case c == '{' && depth > 0:
		var o plainObject
		return o.scan(b, i, depth)
	case c == '[' && depth > 0:
		return plainArray(b, i, depth)
	case c == 't':
		return plainWord(b, i, "true")
	case c == 'f':
		return plainWord(b, i, "false")
	case c == 'n':
		return plainWord(b, i, "null")
	}
	return plainInteger(b, i)
}

func plainArray(b []byte, i, depth int) int {
	if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for more := true; more; {
		if i = plainValue(b, i, depth-1); i < 0 {
			return -1
		}
		i, more = plainNext(b, i, ']')
	}
	return i
}

// plainString reads the string that begins at b[i]; one that is a name has no escapes, so that equal names have equal bytes.
func plainString(b []byte, i int, name bool) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; {
		for i < len(b) && plainText[b[i]] {
			i++
		}
		switch {
		case i >= len(b):
			return -1
		case b[i] == '"':
			return i + 1
		case b[i] == '\\' && !name && i+1 < len(b) && strings.IndexByte(plainEscapes, b[i+1]) >= 0:
			i += 2
		case b[i] < utf8.RuneSelf:
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

// plainEscapes are the bytes that a backslash may precede, but for u: surrogates are the library's business.
const plainEscapes = `"\/bfnrt`

// plainText marks printable ASCII but for the quote and the backslash.
var plainText = func() (t [256]bool) {
	for c := ' '; c <= '~'; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// plainInteger returns -1 for a fraction or an exponent, and for what is no number.
func plainInteger(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == start || i > start+1 && b[start] == '0' || i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
		return -1
	}
	return i
}

func plainWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}
