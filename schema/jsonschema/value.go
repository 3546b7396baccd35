package jsonschema

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// kinds is a set of JSON Schema types.
type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	object
	array
	number
	text
	integer // a number without a fraction is both
)

var kindNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// kindOf returns the kind with a name, 0 if there is none.
func kindOf(name string) kinds {
	i := slices.Index(kindNames, name)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// String returns the names of the types, such as "a string or null".
func (k kinds) String() string {
	var names []string
	for i, name := range kindNames {
		switch {
		case k&(1<<i) == 0:
		case 1<<i == null:
			names = append(names, name)
		case strings.ContainsAny(name[:1], "aio"):
			names = append(names, "an "+name)
		default:
			names = append(names, "a "+name)
		}
	}
	return strings.Join(names, " or ")
}

// value is a parsed JSON value.
type value struct {
	raw  []byte
	kind kinds // one kind; an integral number also has integer
	*contents
}

// contents has the members of an object or the elements of an array.
type contents struct {
	names []string // of an object's members, in their order
	items []value  // the members, or an array's elements
}

// empty is the contents of scalar values.
var empty = new(contents)

// read parses valid JSON.
func read(raw []byte) (v value) {
	v.raw, v.contents = raw, empty
	size := 0
	switch raw[0] {
	case '{':
		v.kind = object
		jsontype.Members(raw, func(_, _ []byte) bool {
			size++
			return true
		})
		if size == 0 {
			break
		}
		v.contents = &contents{make([]string, 0, size), make([]value, 0, size)}
		jsontype.Members(raw, func(name, item []byte) bool {
			v.names, v.items = append(v.names, string(name)), append(v.items, read(item))
			return true
		})
	case '[':
		v.kind = array
		jsontype.Elements(raw, func([]byte) bool {
			size++
			return true
		})
		if size == 0 {
			break
		}
		v.contents = &contents{items: make([]value, 0, size)}
		jsontype.Elements(raw, func(item []byte) bool {
			v.items = append(v.items, read(item))
			return true
		})
	case '"':
		v.kind = text
	case 't', 'f':
		v.kind = boolean
	case 'n':
		v.kind = null
	default:
		v.kind = number
		if !bytes.ContainsAny(raw, ".eE") || v.number().Whole() {
			v.kind |= integer
		}
	}
	return v
}

// text returns the content of a string.
func (v *value) text() string { return string(jsontype.Unquote(v.raw)) }

func (v *value) number() jsontype.Number { return jsontype.ParseNumber(v.raw) }

// member returns the member of an object with the name, or nil.
func (v *value) member(name string) *value {
	if i := slices.Index(v.names, name); i >= 0 {
		return &v.items[i]
	}
	return nil
}

// canonical appends the canonical form of v, which is the same for equal values.
func (v *value) canonical(dst []byte) []byte {
	switch {
	case v.kind&number != 0:
		return v.number().Append(dst)
	case v.kind == text:
		return jsontype.AppendString(dst, v.text())
	case v.kind == array:
		dst = append(dst, '[')
		for i := range v.items {
			dst = append(v.items[i].canonical(dst), ',')
		}
		return append(dst, ']')
	case v.kind == object:
		order := make([]int, len(v.names))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(v.names[a], v.names[b]) })
		dst = append(dst, '{')
		for _, i := range order {
			dst = append(jsontype.AppendString(dst, v.names[i]), ':')
			dst = append(v.items[i].canonical(dst), ',')
		}
		return append(dst, '}')
	}
	return append(dst, v.raw...)
}

// place is the position of a value within another; nil is the whole value.
type place struct {
	within *place
	name   string
	index  int // of an element; -1: a member
}

func (p *place) member(name string) *place { return &place{p, name, -1} }

// child returns the place of the i-th member or element of v, which is at p.
func (p *place) child(v *value, i int) *place {
	if v.kind == object {
		return p.member(v.names[i])
	}
	return &place{p, "", i}
}

func (p *place) depth() (n int) {
	for ; p != nil; p = p.within {
		n++
	}
	return n
}

// String returns the place as in messages: notes[2].text.
func (p *place) String() string {
	var parts []string
	for ; p != nil; p = p.within {
		switch {
		case p.index >= 0:
			parts = append(parts, "["+strconv.Itoa(p.index)+"]")
		case p.within == nil:
			parts = append(parts, p.name)
		default:
			parts = append(parts, "."+p.name)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// Misfit describes the part of a value that does not match.
type Misfit struct {
	At  string // the member, such as notes[2].text; "": the value itself
	Why string // such as: must be a string
}

// mismatch is the first misfit of a check, before its message is made.
type mismatch struct {
	at  *place
	why string
}

func (p *place) is(format string, args ...any) *mismatch {
	return &mismatch{p, fmt.Sprintf(format, args...)}
}

func (m *mismatch) shown() *Misfit {
	if m == nil {
		return nil
	}
	return &Misfit{m.at.String(), m.why}
}
