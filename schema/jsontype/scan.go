package jsontype

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// The functions of this file are the only JSON grammar of the tree (RFC 8259). They have no state and do not allocate.

// Skip returns the index after the JSON value that begins at b[i], or -1 if there is none or if it
// is nested deeper than depth. As in the JSON grammar, names may repeat and
// escaped surrogates may be unpaired. Invalid UTF-8 is refused.
func Skip(b []byte, i, depth int) int { return scanValue(b, i, depth, false) }

// fewMembers is the largest number of members of an Object, for which each name is compared with all others.
const fewMembers = 16

// member has the offsets of a member's name, without the quotes, and value.
type member struct{ name, nameEnd, value, valueEnd int32 }

// Object has the offsets of the members of a scanned object.
type Object struct {
	members [fewMembers]member
	count   int
}

// Scan scans line as one object, with white space around it, and records its members. It is a fast path for usual frames:
// strict JSON, no escapes in names, no \u in strings, at most fewMembers members. It accepts nothing that the library
// refuses. If it returns false, the library must decide.
func (o *Object) Scan(line []byte) bool {
	i := SkipSpace(line, 0)
	if i == len(line) || line[i] != '{' {
		return false
	}
	i = scanObject(line, i, MaxDepth, o)
	return i > 0 && SkipSpace(line, i) == len(line)
}

// Len returns the number of members.
func (o *Object) Len() int { return o.count }

// Member returns the name and the raw value of member k of the object that was scanned in line.
func (o *Object) Member(line []byte, k int) (name, value []byte) {
	m := &o.members[k]
	return line[m.name:m.nameEnd], line[m.value:m.valueEnd]
}

// has reports whether a member of that name was read before.
func (o *Object) has(b, name []byte) bool {
	for k := range o.count {
		if m := &o.members[k]; string(b[m.name:m.nameEnd]) == string(name) {
			return true
		}
	}
	return false
}

// scanValue returns the index after the value that begins at b[i], or -1. A strict scan accepts only what Object.Scan
// accepts.
func scanValue(b []byte, i, depth int, strict bool) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		return scanString(b, i, textEscapes(strict))
	case c == '{' && depth > 0:
		if !strict {
			return scanObject(b, i, depth, nil)
		}
		var o Object
		return scanObject(b, i, depth, &o)
	case c == '[' && depth > 0:
		return scanArray(b, i, depth, strict)
	case c == 't':
		return scanWord(b, i, "true")
	case c == 'f':
		return scanWord(b, i, "false")
	case c == 'n':
		return scanWord(b, i, "null")
	}
	return scanNumber(b, i)
}

// scanObject scans the object that begins at b[i]. A strict scan records its members in o;
// otherwise o is nil.
func scanObject(b []byte, i, depth int, o *Object) int {
	names := textEscapes(false)
	if o != nil {
		o.count, names = 0, "" // equal names have equal bytes
	}
	if i = SkipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for more := true; more; {
		name := i + 1
		if i = scanString(b, i, names); i < 0 {
			return -1
		}
		nameEnd := i - 1
		if i = SkipSpace(b, i); i >= len(b) || b[i] != ':' {
			return -1
		}
		i = SkipSpace(b, i+1)
		value := i
		if i = scanValue(b, i, depth-1, o != nil); i < 0 {
			return -1
		}
		if o != nil {
			if o.count == fewMembers || o.has(b, b[name:nameEnd]) {
				return -1
			}
			o.members[o.count] = member{int32(name), int32(nameEnd), int32(value), int32(i)}
			o.count++
		}
		i, more = scanNext(b, i, '}')
	}
	return i
}

func scanArray(b []byte, i, depth int, strict bool) int {
	if i = SkipSpace(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for more := true; more; {
		if i = scanValue(b, i, depth-1, strict); i < 0 {
			return -1
		}
		i, more = scanNext(b, i, ']')
	}
	return i
}

// scanNext scans the text after a member or element. If there is a comma, it returns the index of the next member or element and
// true. If there is the byte end, it returns the index after it and false. Otherwise it returns -1 and false.
func scanNext(b []byte, i int, end byte) (next int, more bool) {
	i = SkipSpace(b, i)
	switch {
	case i < len(b) && b[i] == ',':
		return SkipSpace(b, i+1), true
	case i < len(b) && b[i] == end:
		return i + 1, false
	}
	return -1, false
}

// textEscapes returns the bytes that may follow a backslash in a string. A strict scan leaves \u to the library.
func textEscapes(strict bool) string {
	const escapes = `"\/bfnrtu`
	if strict {
		return escapes[:len(escapes)-1]
	}
	return escapes
}

// scanString scans the string that begins at b[i]. escapes has the allowed escapes.
func scanString(b []byte, i int, escapes string) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; {
		for short := min(i+24, len(b)); i < short && itself[b[i]]; { // most strings are short
			i++
		}
		if i < len(b) && itself[b[i]] {
			i = plainEnd(b, i)
		}
		switch {
		case i >= len(b):
			return -1
		case b[i] == '"':
			return i + 1
		case b[i] == '\\':
			if i++; i >= len(b) || strings.IndexByte(escapes, b[i]) < 0 {
				return -1
			}
			if b[i] == 'u' && !hex(b[i+1:]) {
				return -1
			}
			i++ // the hexadecimal digits are scanned as plain characters
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

// plainEnd returns the index of the first byte from b[i] on that is not a plain character of a
// string, or len(b). It examines eight bytes at a time: the lowest byte of m whose top bit is set
// is the first quote, backslash, control or non-ASCII byte. Borrows only affect bytes after it.
func plainEnd(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		m := (w | (w - ones*' ') | ((w ^ ones*'"') - ones) | ((w ^ ones*'\\') - ones)) & tops
		if m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && itself[b[i]] {
		i++
	}
	return i
}

// hex reports whether b begins with four hexadecimal digits.
func hex(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	for _, c := range b[:4] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

// itself marks the plain bytes of a string: ASCII without controls, the quote and the backslash.
var itself = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// scanNumber returns the index after the number that begins at b[i], or -1 if there is none.
func scanNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' { // a number with several digits must not begin with 0
		i++
	} else if i = scanDigits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return scanDigits(b, i)
	}
	return i
}

// scanDigits returns the index after the digits that begin at b[i], or -1 if there are none.
func scanDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func scanWord(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// SkipSpace returns the index of the first byte from b[i] on that is not white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}
