package hostfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// Member returns the value at a path of member names in a JSON text, which may have comments; nil if there is none.
func Member(text []byte, path ...string) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	at := &root
	for i, name := range path {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, notObject(path[:i])
		}
		k := find(object, name)
		if k < 0 {
			return nil, nil
		}
		at = &object.Members[k].Value
	}
	value := hujson.Value{Value: at.Clone().Value}
	value.Minimize()
	return value.Pack(), nil
}

// SetMember returns a JSON text with value, one JSON value, at a path of member names. It creates missing objects of
// the path.
func SetMember(text, value []byte, path ...string) ([]byte, error) {
	if was, err := Member(text, path...); err != nil || bytes.Equal(was, minimal(value)) {
		return text, err
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	step, at := indent(&root), &root
	for i, name := range path {
		object := at.Value.(*hujson.Object) // Member has checked this
		k := find(object, name)
		if k < 0 {
			k = add(object, name, step, i)
		}
		at = &object.Members[k].Value
	}
	set, err := hujson.Parse(value)
	if err != nil {
		return nil, fmt.Errorf("the new entry is not JSON: %w", err)
	}
	at.Value = set.Value
	layOut(at, step, len(path))
	return ended(root.Pack()), nil
}

// RemoveMember returns a JSON text without the member at a path, and without enclosing objects that become empty.
func RemoveMember(text []byte, path ...string) ([]byte, error) {
	if was, err := Member(text, path...); err != nil || was == nil {
		return text, err
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	for depth := len(path); depth > 0; depth-- {
		at := &root
		for _, name := range path[:depth-1] {
			object := at.Value.(*hujson.Object)
			at = &object.Members[find(object, name)].Value
		}
		object := at.Value.(*hujson.Object)
		k := find(object, path[depth-1])
		comments := bytes.TrimRight(object.Members[k].Name.BeforeExtra, " \t\r\n") // comments after the previous member
		object.Members = append(object.Members[:k], object.Members[k+1:]...)
		if k < len(object.Members) {
			next := &object.Members[k].Name
			next.BeforeExtra = append(comments, next.BeforeExtra...)
		} else {
			object.AfterExtra = append(comments, object.AfterExtra...)
			if k > 0 {
				object.Members[k-1].Value.AfterExtra = nil // the comma of the removed member
			}
		}
		if len(object.Members) > 0 || bytes.ContainsRune(object.AfterExtra, '/') {
			break
		}
		object.AfterExtra = nil
	}
	return root.Pack(), nil
}

// Elements returns the elements of a JSON array unchanged; nil if value is nil.
func Elements(value []byte) ([][]byte, error) {
	if value == nil {
		return nil, nil
	}
	v, err := hujson.Parse(value)
	if err != nil {
		return nil, err
	}
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, errors.New("it is not an array")
	}
	var all [][]byte
	for _, e := range array.Elements {
		e = hujson.Value{Value: e.Value}
		all = append(all, e.Pack())
	}
	return all, nil
}

// Array formats elements as a JSON array.
func Array(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']')
}

func parse(text []byte) (hujson.Value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return root, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return root, notObject(nil)
	}
	seen := ""
	for v := range root.All() {
		if object, ok := v.Value.(*hujson.Object); ok {
			seen = twice(object)
		}
		if seen != "" {
			return root, fmt.Errorf("it has two members %q in one object", seen)
		}
	}
	return root, nil
}

// twice returns a name that two members of an object share, "" if there is none.
func twice(object *hujson.Object) string {
	names := make(map[string]bool)
	for _, m := range object.Members {
		name := m.Name.Value.(hujson.Literal).String()
		if names[name] {
			return name
		}
		names[name] = true
	}
	return ""
}

func notObject(path []string) error {
	if len(path) == 0 {
		return errors.New("it is not a JSON object")
	}
	return fmt.Errorf("%s in it is not a JSON object", strings.Join(path, "."))
}

func minimal(value []byte) []byte {
	v, err := hujson.Parse(value)
	if err != nil {
		return value
	}
	v.Minimize()
	return v.Pack()
}

func find(object *hujson.Object, name string) int {
	for i, m := range object.Members {
		if m.Name.Value.(hujson.Literal).String() == name {
			return i
		}
	}
	return -1
}

// indent returns the unit of indentation of the file.
func indent(root *hujson.Value) string {
	if object := root.Value.(*hujson.Object); len(object.Members) > 0 {
		extra := string(object.Members[0].Name.BeforeExtra)
		if i := strings.LastIndexByte(extra, '\n'); i >= 0 && strings.TrimSpace(extra[i:]) == "" {
			return extra[i+1:]
		}
	}
	return "  "
}

// add adds a member with an empty object, on a line of its own, to an object at a depth. It returns the index of the member.
func add(object *hujson.Object, name, step string, depth int) int {
	before := strings.TrimRight(string(object.AfterExtra), " \t\r\n") // comments after the former last member
	m := hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra(before + "\n" + strings.Repeat(step, depth+1)), Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: &hujson.Object{}},
	}
	if k := len(object.Members); k > 0 && object.Members[k-1].Value.AfterExtra != nil {
		m.Value.AfterExtra = hujson.Extra{} // keep the trailing comma
	}
	object.Members = append(object.Members, m)
	object.AfterExtra = hujson.Extra("\n" + strings.Repeat(step, depth))
	return len(object.Members) - 1
}

// layOut formats a value at a depth: each member of an object on its own line, and an array of scalars on one
// line.
func layOut(v *hujson.Value, step string, depth int) {
	line := hujson.Extra("\n" + strings.Repeat(step, depth+1))
	end := hujson.Extra("\n" + strings.Repeat(step, depth))
	switch composite := v.Value.(type) {
	case *hujson.Object:
		for i := range composite.Members {
			m := &composite.Members[i]
			m.Name.BeforeExtra, m.Name.AfterExtra = line, nil
			m.Value.BeforeExtra, m.Value.AfterExtra = hujson.Extra(" "), nil
			layOut(&m.Value, step, depth+1)
		}
		if len(composite.Members) > 0 {
			composite.AfterExtra = end
		}
	case *hujson.Array:
		long := false
		for _, e := range composite.Elements {
			if _, ok := e.Value.(hujson.Literal); !ok {
				long = true
			}
		}
		for i := range composite.Elements {
			e := &composite.Elements[i]
			e.BeforeExtra, e.AfterExtra = nil, nil
			if long {
				e.BeforeExtra = line
			} else if i > 0 {
				e.BeforeExtra = hujson.Extra(" ")
			}
			layOut(e, step, depth+1)
		}
		composite.AfterExtra = nil
		if long {
			composite.AfterExtra = end
		}
	}
}

// ended returns a text with a line break at its end.
func ended(text []byte) []byte {
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return text
}

// EditElements returns a JSON text with each element of the array at a path replaced by what edit returns for it; nil removes the
// element. Everything else, comments between the elements too, stays.
func EditElements(text []byte, edit func(element []byte) ([]byte, error), path ...string) ([]byte, error) {
	if was, err := Member(text, path...); err != nil || was == nil {
		return text, err
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	array, err := arrayAt(&root, path)
	if err != nil {
		return nil, err
	}
	kept, changed := array.Elements[:0:0], false
	for _, e := range array.Elements {
		was := hujson.Value{Value: e.Value}.Pack()
		now, err := edit(was)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(was, now) {
			changed = true
			if now == nil {
				continue
			}
			set, err := hujson.Parse(now)
			if err != nil {
				return nil, fmt.Errorf("the new element is not JSON: %w", err)
			}
			e.Value = set.Value
		}
		kept = append(kept, e)
	}
	if !changed {
		return text, nil
	}
	array.Elements = kept
	return root.Pack(), nil
}

// AppendElement returns a JSON text with a value added at the end of the array at a path, which it creates if it is missing.
func AppendElement(text, value []byte, path ...string) ([]byte, error) {
	if was, err := Member(text, path...); err != nil || was == nil {
		if err != nil {
			return nil, err
		}
		return SetMember(text, Array([][]byte{value}), path...)
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	array, err := arrayAt(&root, path)
	if err != nil {
		return nil, err
	}
	step, depth := indent(&root), len(path)
	set, err := hujson.Parse(value)
	if err != nil {
		return nil, fmt.Errorf("the new element is not JSON: %w", err)
	}
	e := hujson.Value{BeforeExtra: hujson.Extra("\n" + strings.Repeat(step, depth+1)), Value: set.Value}
	layOut(&e, step, depth+1)
	if k := len(array.Elements); k > 0 && array.Elements[k-1].AfterExtra != nil {
		e.AfterExtra = hujson.Extra{} // keep the trailing comma
	}
	array.Elements = append(array.Elements, e)
	array.AfterExtra = hujson.Extra(strings.TrimRight(string(array.AfterExtra), " \t\r\n") + "\n" + strings.Repeat(step, depth))
	return ended(root.Pack()), nil
}

// arrayAt returns the array at a path of member names that exists.
func arrayAt(root *hujson.Value, path []string) (*hujson.Array, error) {
	at := root
	for _, name := range path {
		object := at.Value.(*hujson.Object) // Member has checked this
		at = &object.Members[find(object, name)].Value
	}
	array, ok := at.Value.(*hujson.Array)
	if !ok {
		return nil, fmt.Errorf("%s in it is not a JSON array", strings.Join(path, "."))
	}
	return array, nil
}

// Same reports whether two JSON texts are the same except for white space and comments.
func Same(a, b []byte) bool { return bytes.Equal(minimal(a), minimal(b)) }
