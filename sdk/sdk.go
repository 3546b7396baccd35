package sdk

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Kernel describes a kernel for its client.
type Kernel struct {
	Schemas  string                  // digest of Syscall.List
	Syscalls []schema.DescribeOutput // sorted by name, without duplicates
}

// Languages returns the languages of clients.
func Languages() []string { return []string{"python", "typescript"} }

// Write writes the client of a kernel in the language name. It returns an error if that is not one of Languages, and
// those of w.
func Write(w io.Writer, name string, k Kernel) error {
	var l *language
	switch name {
	case "python":
		l = python()
	case "typescript":
		l = typescript()
	default:
		return fmt.Errorf("%q is not a language of clients: use one of %s", name, strings.Join(Languages(), " and "))
	}
	parsed, err := template.New(name).Funcs(template.FuncMap{
		"type": l.spell, "quote": quote, "key": l.key, "plain": l.isPlain, "comment": comment, "doc": l.doc,
	}).Parse(l.template)
	if err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	if err := parsed.Execute(w, l.file(k)); err != nil {
		return fmt.Errorf("write client: %w", err)
	}
	return nil
}

// file is the data of a template.
type file struct {
	Schemas string
	Errors  []fault.Entry
	Types   []*shape // objects
	Calls   []call
}

// call is one syscall. Method is the name of the method that calls it.
type call struct {
	Type, Kind, Doc, Method string
	Input, Output           *shape
}

// TakesData reports whether a call takes data.
func (c call) TakesData() bool { return c.Input.kind != object || len(c.Input.Members) > 0 }

// NeedsData reports whether a call needs data.
func (c call) NeedsData() bool {
	return c.Input.kind != object || slices.ContainsFunc(c.Input.Members, func(m *member) bool { return m.Required })
}

func (l *language) file(k Kernel) file {
	f := file{Schemas: k.Schemas, Errors: fault.Catalogue()}
	methods, types := namesBeside(l.taken...), namesBeside(l.taken...)
	for i := range k.Syscalls {
		d := &k.Syscalls[i]
		domain, action, _ := strings.Cut(d.Name, ".")
		c := call{
			Type: d.Name, Kind: d.Kind, Doc: d.Description, Method: methods.unique(l.method(d.Name)),
			Input: shapeOf(d.Input), Output: shapeOf(d.Output),
		}
		if c.TakesData() {
			f.Types = c.Input.named(f.Types, types, domain+action+"Input")
		}
		f.Types = c.Output.named(f.Types, types, domain+action+"Output")
		f.Calls = append(f.Calls, c)
	}
	return f
}

// named gives names to the objects in s, the first with the given name, and appends them to all.
func (s *shape) named(all []*shape, taken names, name string) []*shape {
	switch s.kind {
	case list, dictionary:
		return s.element.named(all, taken, name)
	case either:
		for _, one := range s.choices {
			all = one.named(all, taken, name)
		}
	case object:
		s.Name = taken.unique(name)
		all = append(all, s)
		for _, m := range s.Members {
			all = m.Shape.named(all, taken, name+titled(m.Name))
		}
	}
	return all
}
