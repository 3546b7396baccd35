package bind

import (
	"path/filepath"
	"slices"
	"strings"
)

// scan has the simple commands of a command line.
type scan struct {
	commands [][]string
	unread   string // why they may not be all that runs; "": they are
}

// split splits a command line of a shell into the words of its simple commands. It expands nothing: what only a shell can expand
// makes the result partial.
func split(line string) *scan {
	s := &scan{}
	var words []string
	var word strings.Builder
	open := false // a word has begun
	end := func() {
		if open {
			words = append(words, word.String())
			word.Reset()
			open = false
		}
	}
	next := func() {
		end()
		if len(words) > 0 {
			s.commands = append(s.commands, words)
			words = nil
		}
	}
	const expanded = "what a shell expands in it is not known"
	quote := rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			escaped, open = false, true
			if r != '\n' {
				word.WriteRune(r)
			}
		case quote == '\'' && r != '\'':
			word.WriteRune(r)
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case r == '\\':
			escaped = true
		case r == '$' || r == '`':
			s.unread, open = expanded, true
			word.WriteRune(r)
		case quote != 0:
			word.WriteRune(r)
		case r == ' ' || r == '\t' || r == '<' || r == '>':
			end()
		case r == '\n' || r == ';' || r == '&' || r == '|' || r == '(' || r == ')':
			next()
		case strings.ContainsRune("*?[]{}~!#", r):
			s.unread, open = expanded, true
			word.WriteRune(r)
		default:
			open = true
			word.WriteRune(r)
		}
	}
	next()
	if quote != 0 || escaped {
		s.unread = "it cannot be parsed"
	}
	s.judge()
	return s
}

// judge removes assignments before programs, and notes the programs whose arguments are code or change what names mean.
func (s *scan) judge() {
	for i, words := range s.commands {
		for len(words) > 1 && assigns(words[0]) {
			words = words[1:]
		}
		s.commands[i] = words
		for k, word := range words {
			switch base := filepath.Base(word); {
			case k == 0 && slices.Contains([]string{"cd", "pushd", "popd", "eval", "exec", "alias", "env", "xargs", "find", "sudo", "make", "ninja", "just", "npm", "npx", "pnpm", "yarn", "cargo", "go"}, base):
				s.unread = base + " may run files that it does not name"
			case k > 0 && slices.Contains([]string{"-c", "-e", "-m", "-lc", "-ic", "--eval", "-C"}, word):
				s.unread = "its argument " + word + " may name code that is not read"
			}
		}
	}
}

// assigns reports whether a word is an assignment to a variable.
func assigns(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
