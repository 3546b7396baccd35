package policy

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// shape describes how rules see a syscall's data: its types, and how to compute its values from a decoded input.
type shape struct {
	record  resolved.RecordType
	members []member
}

// member is one member of an input.
type member struct {
	name  string
	index []int
	value func(reflect.Value) (types.Value, error) // returns nil, nil if the member is absent
	form  form
	ref   bool                     // it is a reference, which rules do not see
	bound func(of ast.IsNode) fact // the values that it can have; nil: not limited
}

// form normalizes a text.
type form uint8

const (
	asItIs form = iota
	keyForm
	urlForm
	nameForm
)

// beside are members of a tool's input that rules also see next to that input.
var beside = []string{"command", "file_path"}

var optionalText = resolved.Attribute{Type: resolved.StringType{}, Optional: true}

const decimal = resolved.ExtensionType("decimal")

var (
	rawType    = reflect.TypeFor[schema.Value]()
	numberType = reflect.TypeFor[jsontype.Decimal]()
	refType    = reflect.TypeFor[schema.BlobRef]()

	contentType = reflect.TypeFor[schema.BodyContent]()
	targetType  = reflect.TypeFor[schema.Target]()
)

// shapes are the shapes of the rows of the syscall table that are judged.
var shapes = sync.OnceValue(func() map[*schema.Syscall]*shape {
	all := make(map[*schema.Syscall]*shape)
	for _, row := range schema.Syscalls() {
		if judged(row) {
			all[row] = shapeOf(row)
		}
	}
	return all
})

// judged reports whether the policy judges calls of a row: calls of clients, and those that the kernel makes for an agent.
// The answer of a provider is not judged, since its call was.
func judged(row *schema.Syscall) bool {
	if provides(row) {
		return false
	}
	return !row.Internal || row == schema.NetConnect.Row() || row == schema.IPCAccept.Syscall || row == schema.NetRequest.Row() || row == schema.NetPublish.Row() || row == schema.SyscallInvoke.Row() || row == schema.ProgramExec.Row()
}

func provides(row *schema.Syscall) bool {
	return row == schema.SyscallComplete.Row() || row == schema.SyscallProgress.Row()
}

// shapeNamed returns the shape of an action; nil if it is not a syscall of the kernel, nor a program.
func shapeNamed(action types.EntityUID) *shape {
	if action.Type == programAction {
		return shapes()[schema.ProgramExec.Row()]
	}
	if row, ok := schema.Lookup(string(action.ID)); ok && action.Type == syscallAction {
		return shapes()[row]
	}
	return nil
}

func shapeOf(row *schema.Syscall) *shape {
	t := row.Input().GoType()
	s := &shape{record: make(resolved.RecordType)}
	s.add(t, nil)
	for i := range s.members {
		m := &s.members[i]
		switch {
		case row.Domain == schema.Memory && (m.name == "key" || m.name == "prefix"):
			m.form = keyForm
		case row == schema.HostToolUse.Row() && m.name == "input":
			for _, name := range beside {
				s.record[types.String(name)] = optionalText
			}
		case row == schema.HTTPFetch.Row() && m.name == "url":
			m.form = urlForm
			s.record["host"] = resolved.Attribute{Type: resolved.StringType{}}
		case m.name == "uri":
			m.form = nameForm
		}
	}
	if in, ok := reflect.New(t).Interface().(schema.Referring); ok { // the content has replaced the reference
		name, _, _ := in.Reference()
		s.require(name)
	}
	if row == schema.HTTPFetch.Row() {
		s.require("method") // it has a default
	}
	return s
}

func (s *shape) require(name string) {
	a := s.record[types.String(name)]
	a.Optional = false
	s.record[types.String(name)] = a
}

func (s *shape) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
		switch name, option, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Type == targetType: // the principal already identifies the actor
		case f.Anonymous:
			s.add(f.Type, index)
		case !f.IsExported() || name == "":
		default:
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if of == refType {
				s.members = append(s.members, member{name: strings.TrimSuffix(name, "Ref"), index: index, ref: true})
				continue
			}
			if of == contentType { // a body is represented by its reference
				name = "bodyRef"
			}
			typ, value := valuesOf(of)
			optional := option == "omitzero" || f.Type.Kind() == reflect.Pointer || of == reflect.TypeFor[jsontype.MaybeText]()
			s.members = append(s.members, member{name: name, index: index, value: present(f.Type, optional, value), bound: boundOf(of, f.Tag)})
			s.record[types.String(name)] = resolved.Attribute{Type: typ, Optional: optional}
		}
	}
}

// boundOf returns the limit of a member's values from its tags.
func boundOf(t reflect.Type, tag reflect.StructTag) func(ast.IsNode) fact {
	least, errLeast := strconv.ParseInt(tag.Get("min"), 10, 64)
	most, errMost := strconv.ParseInt(tag.Get("max"), 10, 64)
	switch words := strings.Fields(tag.Get("enum")); {
	case t.Kind() == reflect.String && len(words) > 0:
		return func(of ast.IsNode) fact { return oneOf(of, texts(words)...) }
	case t.Kind() == reflect.Int64 && (errLeast == nil || errMost == nil):
		if errLeast != nil {
			least = math.MinInt64
		}
		if errMost != nil {
			most = math.MaxInt64
		}
		return func(of ast.IsNode) fact { return within(of, types.Long(least), types.Long(most)) }
	}
	return nil
}

// present omits an optional value that is absent.
func present(t reflect.Type, optional bool, value func(reflect.Value) (types.Value, error)) func(reflect.Value) (types.Value, error) {
	pointer := t.Kind() == reflect.Pointer
	if !optional {
		return value
	}
	return func(v reflect.Value) (types.Value, error) {
		if v.IsZero() {
			return nil, nil
		}
		if pointer {
			v = v.Elem()
		}
		return value(v)
	}
}

// valuesOf returns the Cedar type of a Go type, and how to compute its values. A value without a fixed type becomes its
// canonical text.
func valuesOf(t reflect.Type) (resolved.IsType, func(reflect.Value) (types.Value, error)) {
	switch {
	case t == rawType:
		return resolved.StringType{}, func(v reflect.Value) (types.Value, error) { return canonical(v.Bytes()) }
	case t == numberType:
		return decimal, func(v reflect.Value) (types.Value, error) { return decimalOf(v.String()) }
	case t.Kind() == reflect.Float64:
		return decimal, func(v reflect.Value) (types.Value, error) {
			return decimalOf(strconv.FormatFloat(v.Float(), 'f', -1, 64))
		}
	case t.Kind() == reflect.String:
		return resolved.StringType{}, func(v reflect.Value) (types.Value, error) { return types.String(v.String()), nil }
	case t.Kind() == reflect.Bool:
		return resolved.BoolType{}, func(v reflect.Value) (types.Value, error) { return types.Boolean(v.Bool()), nil }
	case t.Kind() == reflect.Int64:
		return resolved.LongType{}, func(v reflect.Value) (types.Value, error) { return types.Long(v.Int()), nil }
	case t.Kind() == reflect.Slice && (t.Elem().Kind() == reflect.String && t.Elem() != numberType || t.Elem().Kind() == reflect.Int64):
		elem, value := valuesOf(t.Elem())
		return resolved.SetType{Element: elem}, func(v reflect.Value) (types.Value, error) {
			list := make([]types.Value, v.Len())
			for i := range list {
				one, err := value(v.Index(i))
				if err != nil {
					return nil, err
				}
				list[i] = one
			}
			return types.NewSet(list...), nil
		}
	case t.Kind() == reflect.Struct:
		inner := &shape{record: make(resolved.RecordType)}
		inner.add(t, nil)
		return inner.record, func(v reflect.Value) (types.Value, error) {
			all := make(types.RecordMap, len(inner.members))
			for i := range inner.members {
				m := &inner.members[i]
				if m.ref {
					continue
				}
				one, err := m.value(v.FieldByIndex(m.index))
				if err != nil {
					return nil, fmt.Errorf("%s: %w", m.name, err)
				}
				if one != nil {
					all[types.String(m.name)] = one
				}
			}
			return types.NewRecord(all), nil
		}
	}
	return resolved.StringType{}, func(v reflect.Value) (types.Value, error) {
		text, err := schema.Marshal(v.Interface())
		if err != nil {
			return nil, err
		}
		return canonical(text)
	}
}

// canonical returns a JSON value in the form of RFC 8785.
func canonical(raw []byte) (types.Value, error) {
	if len(raw) == 0 {
		raw = []byte("null")
	}
	text, err := jsontype.Canonical(raw)
	return types.String(text), err
}

// decimalOf converts a number with at most four decimals. Other numbers cannot be judged.
func decimalOf(text string) (types.Value, error) {
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	d, err := types.ParseDecimal(text)
	if err != nil {
		return nil, fmt.Errorf("%s has more digits than a rule can compare", text)
	}
	return d, nil
}
