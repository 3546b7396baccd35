package quote

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Word quotes a word so that sh, bash, zsh and fish read it as one argument, and interpret nothing of it.
//
// The shells agree on little: in single quotes fish reads \\ and \' as escapes and the others do not, so a backslash stands
// outside of them. No form of a control character is common to all. The one used here, $'\012', is the same word in bash,
// in zsh and in a sh of POSIX 2024; in an older sh it is another word, and in fish an error, so no shell executes a part.
func Word(word string) string {
	switch {
	case plain(word):
		return word
	case word == "":
		return "''"
	case strings.ContainsFunc(word, Hidden), !utf8.ValidString(word):
		return octal(word)
	}
	var b strings.Builder
	open := false // a quote
	quoted := func(want bool) {
		if open != want {
			b.WriteByte('\'')
		}
		open = want
	}
	for _, r := range word {
		quoted(r != '\'' && r != '\\')
		if !open {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	quoted(false)
	return b.String()
}

// Line quotes words, as one command.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Word(word)
	}
	return strings.Join(quoted, " ")
}

// Command returns the command of words for a sentence, in double quotes. A command that a shell would interpret in double
// quotes stands without them, in case somebody copies these too.
func Command(words ...string) string {
	line := Line(words...)
	for _, word := range words {
		if strings.ContainsAny(word, "\"$`\\!") && !strings.HasPrefix(Word(word), "$'") {
			return line
		}
	}
	return `"` + line + `"`
}

// plain reports whether no shell interprets anything of a word. zsh replaces a word that begins with =, fish one that begins
// with %.
func plain(word string) bool {
	return word != "" && word[0] != '=' && word[0] != '%' && strings.Trim(word, letters+"-_./=,:@%+") == ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// octal quotes a word of which some characters must not be displayed.
func octal(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(word) > 0 {
		r, size := utf8.DecodeRuneInString(word)
		if Hidden(r) || r == utf8.RuneError || strings.ContainsRune("'\\\"$`!", r) {
			for i := range size {
				fmt.Fprintf(&b, `\%03o`, word[i])
			}
		} else {
			b.WriteString(word[:size])
		}
		word = word[size:]
	}
	return b.String() + "'"
}

// List returns the values of a flag that takes several, separated by commas. One with a comma stays one.
func List(values []string) string {
	list := make([]string, len(values))
	for i, value := range values {
		if list[i] = value; strings.ContainsAny(value, ",\"\r\n") || value == "" {
			list[i] = `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
		}
	}
	return strings.Join(list, ",")
}
