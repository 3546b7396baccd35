package fault

import (
	"maps"
	"slices"
	"strings"
)

// ID is the stable name of a failure, domain.reason in lower case. It is never reused and never reworded. It is an error, so
// that errors.Is(err, fault.MemoryNotFound) tells an id.
type ID string

// Error returns the id.
func (id ID) Error() string { return string(id) }

// Kind returns the kind of the id, Internal where this kernel does not know it.
func (id ID) Kind() Kind { return catalogue[id].Kind }

// Domain returns what stands before the dot.
func (id ID) Domain() string {
	domain, _, _ := strings.Cut(string(id), ".")
	return domain
}

// Entry is what the catalogue says of an id.
type Entry struct {
	ID      ID
	Kind    Kind
	Meaning string // what is wrong, in general
	Fix     string // what to do about it, in general
}

// Catalogue returns every id, sorted.
func Catalogue() []Entry {
	list := make([]Entry, 0, len(catalogue))
	for _, id := range slices.Sorted(maps.Keys(catalogue)) {
		e := catalogue[id]
		e.ID = id
		list = append(list, e)
	}
	return list
}

// Lookup returns what the catalogue says of an id.
func Lookup(id ID) (Entry, bool) {
	e, ok := catalogue[id]
	e.ID = id
	return e, ok
}
