package sdk

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed pwos.py.tmpl
var pythonTemplate string

// python generates for Python 3.9 or later, with its standard library.
func python() *language {
	l := &language{
		template: pythonTemplate,
		method:   func(syscall string) string { return strings.Join(words(syscall), "_") },
		isName:   isPythonMember,
		escape:   strings.NewReplacer(`\`, `\\`, `"`, `\"`), // of a docstring
	}
	l.spell = func(s *shape) string {
		if s.nullable {
			return "Optional[" + l.python(s) + "]"
		}
		return l.python(s)
	}
	return l
}

func (l *language) python(s *shape) string {
	switch s.kind {
	case text:
		if len(s.words) > 0 {
			return "Literal[" + quoted(s.words, ", ") + "]"
		}
		return "str"
	case integer:
		return "int"
	case number:
		return "float"
	case boolean:
		return "bool"
	case list:
		return "list[" + l.spell(s.element) + "]"
	case dictionary:
		return "dict[str, " + l.spell(s.element) + "]"
	case either:
		return "Union[" + l.joined(s.choices, ", ") + "]"
	case object:
		return s.Name
	}
	return "Any"
}

var pythonMember = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][A-Za-z0-9_]*$`) })

// isPythonMember reports whether a member can be an attribute in a class: a keyword cannot, nor a name that would hide
// a type that other members have.
func isPythonMember(name string) bool {
	return pythonMember().MatchString(name) && !slices.Contains([]string{
		"and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for",
		"from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
		"with", "yield", "str", "int", "float", "bool", "list", "dict",
	}, name)
}
