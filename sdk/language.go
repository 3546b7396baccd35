package sdk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
)

// language describes how to generate a client in a programming language.
type language struct {
	template string
	taken    []string                    // names that a method must not have
	method   func(syscall string) string // name of a syscall's method
	spell    func(*shape) string         // source of a type
	isName   func(string) bool           // reports whether a member needs no quotes
	escape   *strings.Replacer           // escapes the ends of a documentation comment
}

// key returns the name of a member, quoted if necessary.
func (l *language) key(name string) string {
	if l.isName(name) {
		return name
	}
	return quote(name)
}

// isPlain reports whether no member of an object needs quotes.
func (l *language) isPlain(s *shape) bool {
	return !slices.ContainsFunc(s.Members, func(m *member) bool { return !l.isName(m.Name) })
}

// doc formats s as a documentation comment.
func (l *language) doc(prefix, s string) string { return comment(prefix, l.escape.Replace(s)) }

// width bounds a line of a comment, unless one word is longer.
const width = 100

// comment wraps s into lines, with the prefix before each except the first. Control characters become spaces.
func comment(prefix, s string) string {
	var b strings.Builder
	column := utf8.RuneCountInString(prefix)
	for word := range strings.FieldsSeq(strings.Map(visible, s)) {
		long := utf8.RuneCountInString(word)
		switch {
		case b.Len() == 0:
		case column+1+long > width:
			b.WriteString("\n" + prefix)
			column = utf8.RuneCountInString(prefix)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += long
	}
	return b.String()
}

// visible returns r, or a space if r is a control character.
func visible(r rune) rune {
	if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
		return ' '
	}
	return r
}

// quote returns a string literal for both languages.
func quote(s string) string {
	var b strings.Builder
	for _, r := range string(schema.AppendString(nil, s)) {
		if r != ' ' && visible(r) == ' ' && r <= 0xffff {
			b.WriteString(escaped(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// escaped returns the numeric escape of a character, which both languages share.
func escaped(r rune) string {
	const hex = "0123456789abcdef"
	return string([]byte{'\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
}

// joined spells shapes, with the separator between them.
func (l *language) joined(shapes []*shape, separator string) string {
	spelled := make([]string, len(shapes))
	for i, s := range shapes {
		spelled[i] = l.spell(s)
	}
	return strings.Join(spelled, separator)
}

// quoted returns words as literals, with the separator between them.
func quoted(words []string, separator string) string {
	literals := make([]string, len(words))
	for i, word := range words {
		literals[i] = quote(word)
	}
	return strings.Join(literals, separator)
}
