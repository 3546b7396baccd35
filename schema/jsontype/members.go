package jsontype

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/promptware-os/pwos/schema/fault"
)

// The functions of this file require valid JSON, so they only search for the ends of values. They
// do not allocate unless a name has escapes.

// stringEnd returns the index after the string that begins at b[i].
func stringEnd(b []byte, i int) int {
	i++
	for short := i + 32; i < short; i++ { // most strings are short: a simple loop is faster than a search
		if b[i] == '"' {
			return i + 1
		}
		if b[i] == '\\' {
			break
		}
	}
	q := bytes.IndexByte(b[i:], '"')
	esc := bytes.IndexByte(b[i:i+q], '\\')
	if esc < 0 {
		return i + q + 1
	}
	for i += esc; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the index after the value that begins at b[i].
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = stringEnd(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// nameAt returns the content of the string that begins at b[i], and the index after it.
func nameAt(b []byte, i int) (name []byte, end int) {
	for end = i + 1; b[end] != '"'; end++ {
		if b[end] == '\\' {
			end = stringEnd(b, i)
			return Unquote(b[i:end]), end
		}
	}
	return b[i+1 : end], end + 1
}

// Members calls yield with the unquoted name and the raw value of each member of the valid JSON value obj, until
// yield returns false. What is no object has no members.
func Members(obj []byte, yield func(name, value []byte) bool) {
	i := SkipSpace(obj, 0)
	if obj[i] != '{' {
		return
	}
	for i++; ; {
		i = SkipSpace(obj, i)
		if obj[i] == '}' {
			return
		}
		if obj[i] == ',' {
			i = SkipSpace(obj, i+1)
		}
		name, end := nameAt(obj, i)
		i = SkipSpace(obj, end)
		i = SkipSpace(obj, i+1) // past the colon
		end = valueEnd(obj, i)
		if !yield(name, obj[i:end]) {
			return
		}
		i = end
	}
}

// Elements calls yield with the raw value of each element of the valid JSON value arr, until yield returns false. What is
// no array has no elements.
func Elements(arr []byte, yield func(value []byte) bool) {
	i := SkipSpace(arr, 0)
	if arr[i] != '[' {
		return
	}
	for i++; ; {
		i = SkipSpace(arr, i)
		if arr[i] == ']' {
			return
		}
		if arr[i] == ',' {
			i = SkipSpace(arr, i+1)
		}
		end := valueEnd(arr, i)
		if !yield(arr[i:end]) {
			return
		}
		i = end
	}
}

// Unquote returns the content of a valid JSON string; it aliases quoted if nothing is escaped. What is another value has no
// content.
func Unquote(quoted []byte) []byte {
	if quoted[0] != '"' {
		return nil
	}
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return inner // not reached: the string was validated before
	}
	return text
}

// TooDeep reports whether arrays and objects in text are nested deeper than limit. text need not be valid
// JSON; TooDeep does not validate it.
func TooDeep(text []byte, limit int) bool {
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= limit {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// MaxDepth is the deepest nesting of arrays and objects in a frame, including its envelope (PROTOCOL 2).
const MaxDepth = 64

// Valid reports whether text is one strict JSON value that is nested at most MaxDepth deep.
func Valid(text []byte) bool { return ValidWithin(text, MaxDepth) }

// ValidWithin reports whether text is one strict JSON value that is nested at most depth deep.
func ValidWithin(text []byte, depth int) bool {
	return !TooDeep(text, depth) && jsontext.Value(text).IsValid()
}

// AppendString appends s as a JSON string; bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if !itself[s[i]] {
			quoted, _ := jsontext.AppendQuote(dst, s) // the error says that bad UTF-8 was replaced
			return quoted
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// largest is the form of the largest number, which the library also gives to those that are larger.
const largest = "1.7976931348623157e+308"

// Canonical returns a valid JSON value in canonical form (RFC 8785). It refuses a number that has none.
func Canonical(value []byte) ([]byte, error) {
	text := jsontext.Value(bytes.Clone(value))
	if err := text.Canonicalize(); err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte(largest)) {
		if err := finite(value); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// finite returns an error if a valid JSON value has a number beyond those of a float64.
func finite(value []byte) error {
	for tokens := jsontext.NewDecoder(bytes.NewReader(value)); ; {
		token, err := tokens.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case token.Kind() == '0':
			if _, ok := finiteNumber([]byte(token.String())); !ok {
				return fmt.Errorf("%s is out of range", fault.Clip(token.String()))
			}
		}
	}
}
