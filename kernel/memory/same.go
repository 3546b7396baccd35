package memory

import "github.com/promptware-os/pwos/schema"

// same is schema.Same for a value that may be much longer than the expected one: then it is not read to its end.
func same(expected schema.Value, stored string) bool {
	return !outweighs(stored, len(expected)) && schema.Same(expected, schema.Value(stored))
}

// longestEscape is how many times as long as what it stands for an escape can be: \u0061 is an a.
const longestEscape = 6

// outweighs reports whether a JSON value says more than any value of so many bytes can, white space aside. It looks at no more bytes
// than tell.
func outweighs(value string, length int) bool {
	left, quoted := longestEscape*length, false
	if len(value) <= left {
		return false
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		case c == '"':
			quoted = !quoted
		case c == '\\':
			i++ // in a string alone
			left--
		}
		if left--; left < 0 {
			return true
		}
	}
	return false
}
