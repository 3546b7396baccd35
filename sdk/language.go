package sdk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
)

// language is how a client is written.
type language struct {
	template string
	taken    []string                    // names that stand for something already
	method   func(syscall string) string // name of a syscall's method
	spell    func(*shape) string         // a type
	isName   func(string) bool           // a member needs no quotes
	escape   *strings.Replacer           // of what would end a documentation comment
}

// key is the name of a member, quoted where it has to be.
func (l *language) key(name string) string {
	if l.isName(name) {
		return name
	}
	return quote(name)
}

// plain reports whether no member of an object has to be quoted.
func (l *language) plain(s *shape) bool {
	return !slices.ContainsFunc(s.Members, func(m *member) bool { return !l.isName(m.Name) })
}

// doc is a text in a documentation comment.
func (l *language) doc(prefix, s string) string { return comment(prefix, l.escape.Replace(s)) }

// width is how long a line of a comment is at most, unless one word is longer.
const width = 100

// comment is a text in lines, the prefix before each but the first. It shows nothing but itself.
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

// visible is r, or a space where it would be obeyed instead of shown.
func visible(r rune) rune {
	if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
		return ' '
	}
	return r
}

// quote is a string literal of either language.
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

// escaped is a character as both languages write it by its number.
func escaped(r rune) string {
	const hex = "0123456789abcdef"
	return string([]byte{'\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]})
}

// joined spells each shape.
func (l *language) joined(shapes []*shape, separator string) string {
	spelled := make([]string, len(shapes))
	for i, s := range shapes {
		spelled[i] = l.spell(s)
	}
	return strings.Join(spelled, separator)
}

// quoted writes each word as a literal.
func quoted(words []string, separator string) string {
	literals := make([]string, len(words))
	for i, word := range words {
		literals[i] = quote(word)
	}
	return strings.Join(literals, separator)
}
