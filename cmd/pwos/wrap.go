package main

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// leastRoom is how many characters a text needs beside what stands before it: in less it is not broken, but runs on.
const leastRoom = 24

// width is that of the terminal at stdout, in characters; 0 where stdout is none, or one that does not tell.
func (a *app) width() int {
	width, _, err := term.GetSize(int(a.stdout.Fd()))
	if err != nil {
		return 0
	}
	return max(width, 0)
}

// hang writes text behind lead, in lines of at most width characters that are broken between words; those after the first
// begin below the text. A word that no line has room for runs on, so that it can be copied. Of width 0 there is one line.
func hang(lead, text string, width int) string {
	indent := utf8.RuneCountInString(lead)
	if width == 0 || width-indent < leastRoom {
		return lead + text
	}
	var b strings.Builder
	b.WriteString(lead)
	at := indent
	for i, word := range strings.Split(text, " ") {
		long := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+long > width && long <= width-indent: // else it is too long for any line
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += long
	}
	return b.String()
}
