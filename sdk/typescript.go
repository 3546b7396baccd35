package sdk

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed pwos.ts.tmpl
var typescriptTemplate string

// typescript generates for Node 22 or later, which strips types, with its standard modules.
func typescript() *language {
	l := &language{
		template: typescriptTemplate,
		// Members of every object, which a method must not hide.
		taken: []string{"toString", "valueOf", "toLocaleString", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"},
		method: func(syscall string) string {
			list := words(syscall)
			for i := range list[1:] {
				list[i+1] = titled(list[i+1])
			}
			return strings.Join(list, "")
		},
		isName: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString,
		escape: strings.NewReplacer("*/", "* /"),
	}
	l.spell = func(s *shape) string {
		if s.nullable {
			return l.typescript(s) + " | null"
		}
		return l.typescript(s)
	}
	return l
}

func (l *language) typescript(s *shape) string {
	switch s.kind {
	case text:
		if len(s.words) > 0 {
			return quoted(s.words, " | ")
		}
		return "string"
	case integer, number:
		return "number"
	case boolean:
		return "boolean"
	case list:
		return "Array<" + l.spell(s.element) + ">"
	case dictionary:
		return "Record<string, " + l.spell(s.element) + ">"
	case either:
		return l.joined(s.choices, " | ")
	case object:
		return s.Name
	}
	return "Json"
}
