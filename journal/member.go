package journal

import (
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Member returns the start and end of the value that a JSON pointer (RFC 6901) names in a strict JSON text; ok is false if
// there is none. In an object with a name twice, that name is not found.
func Member(text []byte, pointer string) (start, end int, ok bool) {
	start, end = 0, jsontype.Skip(text, 0, maxDepth)
	if end < 0 || pointer != "" && pointer[0] != '/' {
		return 0, 0, false
	}
	for pointer != "" {
		var token string
		if token, pointer, ok = pointerToken(pointer); !ok {
			return 0, 0, false
		}
		switch text[start] {
		case '{':
			start, end, ok = named(text, start, token)
		case '[':
			start, end, ok = numbered(text, start, token)
		default:
			ok = false
		}
		if !ok {
			return 0, 0, false
		}
	}
	return start, end, true
}

// pointerToken splits the first name off a pointer.
func pointerToken(pointer string) (token, rest string, ok bool) {
	token = pointer[1:]
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, rest = token[:i], token[i:]
	}
	for i := 0; i < len(token); i++ {
		if token[i] == '~' {
			if i++; i == len(token) || token[i] != '0' && token[i] != '1' {
				return "", "", false
			}
		}
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token), rest, true
}

// named finds a member of the valid object that starts at text[i].
func named(text []byte, i int, name string) (start, end int, ok bool) {
	for i = jsontype.SkipSpace(text, i+1); text[i] != '}'; {
		nameEnd := jsontype.Skip(text, i, maxDepth)
		found := jsontype.Unquote(text[i:nameEnd])
		value := jsontype.SkipSpace(text, jsontype.SkipSpace(text, nameEnd)+1)
		i = jsontype.Skip(text, value, maxDepth)
		if string(found) == name {
			if ok {
				return 0, 0, false
			}
			start, end, ok = value, i, true
		}
		i = afterComma(text, i)
	}
	return start, end, ok
}

// numbered finds an element of the valid array that starts at text[i].
func numbered(text []byte, i int, index string) (start, end int, ok bool) {
	wanted, err := strconv.ParseUint(index, 10, 31)
	if err != nil || strconv.FormatUint(wanted, 10) != index {
		return 0, 0, false
	}
	i = jsontype.SkipSpace(text, i+1)
	for n := uint64(0); text[i] != ']'; n++ {
		end = jsontype.Skip(text, i, maxDepth)
		if n == wanted {
			return i, end, true
		}
		i = afterComma(text, end)
	}
	return 0, 0, false
}

// afterComma returns the index of the next member, or of the closing bracket.
func afterComma(text []byte, i int) int {
	if i = jsontype.SkipSpace(text, i); text[i] == ',' {
		i = jsontype.SkipSpace(text, i+1)
	}
	return i
}
