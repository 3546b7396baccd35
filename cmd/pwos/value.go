package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/promptware-os/pwos/schema"
)

// The functions of this file take apart JSON that is known to be valid.

// objectOf returns the members of an object; ok is false where raw is none.
func objectOf(raw schema.Value) (members map[string]schema.Value, ok bool) {
	return valueOf[map[string]schema.Value](raw)
}

// arrayOf returns the elements of an array; ok is false where raw is none.
func arrayOf(raw schema.Value) (elements []schema.Value, ok bool) {
	return valueOf[[]schema.Value](raw)
}

// textOf returns the content of a string; ok is false where raw is none.
func textOf(raw schema.Value) (text string, ok bool) { return valueOf[string](raw) }

// valueOf reads raw, which is empty where a member is not there, as a T.
func valueOf[T any](raw schema.Value) (value T, ok bool) {
	if len(raw) == 0 {
		return value, false
	}
	decoded, err := schema.TypeOf[T]().Decode(raw)
	if err != nil {
		return value, false
	}
	return *decoded.(*T), true
}

// shown is how a value looks at a terminal: a string without its quotes, anything else as JSON. What would not be printed
// but obeyed by the terminal is escaped: the text may be anybody's.
func shown(raw schema.Value) string {
	if text, ok := textOf(raw); ok && !strings.ContainsFunc(text, obeyed) {
		return text
	}
	return escaped(string(raw))
}

func escaped(text string) string {
	if !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if obeyed(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// obeyed reports whether a terminal may do something else with r than draw it.
func obeyed(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
