package jsontype

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema/fault"
)

// Invalid returns an InvalidInput fault at the named member (PROTOCOL 3: the message has the name of the member).
func Invalid(field, format string, args ...any) *fault.Fault {
	field = fault.Clip(field)
	return fault.WireInvalidInput.New("Invalid input: "+field+" "+format, args...).At(field)
}

// Decode decodes a message's data, valid JSON, as the Go type behind t and returns a pointer to it. It panics on a text that
// is not valid JSON: see DecodeUntrusted. Null data means an empty object. Data that does not fit is an InvalidInput error
// that names the member. Raw values alias data.
func (t *Type) Decode(data []byte) (any, *fault.Fault) {
	dst := reflect.New(t.goType)
	if t.shape == record && string(data) == "null" {
		data = []byte("{}")
	}
	if err := t.decodeInto(dst.Elem(), data, ""); err != nil {
		return nil, err
	}
	return dst.Interface(), nil
}

// DecodeUntrusted is Decode for a text that may not be valid JSON.
func (t *Type) DecodeUntrusted(text []byte) (any, *fault.Fault) {
	if !Valid(text) {
		return nil, fault.WireInvalidInput.New("Invalid input: it is not one strict JSON value")
	}
	return t.Decode(text)
}

func (t *Type) decodeInto(dst reflect.Value, raw []byte, at string) *fault.Fault {
	switch t.shape {
	case anything:
		dst.SetBytes(raw)
		return nil
	case text:
		return t.decodeText(dst, raw, at)
	case integer:
		n, ok := ParseInteger(raw)
		if !ok || float64(n) < t.min || float64(n) > t.max {
			return Invalid(place(at), "must be an integer%s", t.bounds())
		}
		dst.SetInt(n)
		return nil
	case numeric:
		f, ok := finiteNumber(raw)
		if !ok || !t.holds(f, raw) {
			return Invalid(place(at), "must be a finite number%s", t.bounds())
		}
		if dst.Kind() == reflect.String { // a Decimal
			dst.SetString(string(raw))
			return nil
		}
		dst.SetFloat(f)
		return nil
	case boolean:
		if raw[0] != 't' && raw[0] != 'f' {
			return Invalid(place(at), "must be true or false")
		}
		dst.SetBool(raw[0] == 't')
		return nil
	case array:
		return t.decodeArray(dst, raw, at)
	case record:
		return t.decodeObject(dst, raw, at)
	default:
		return t.decodeDictionary(dst, raw, at)
	}
}

func (t *Type) decodeText(dst reflect.Value, raw []byte, at string) *fault.Fault {
	switch {
	case raw[0] == 'n' && t.orNull:
		dst.SetString("")
		return nil
	case raw[0] != '"':
		return Invalid(place(at), "must be a string")
	}
	s := string(Unquote(raw))
	switch n := utf8.RuneCountInString(s); {
	case n < t.minLen && n == 0:
		return Invalid(place(at), "must not be empty")
	case n < t.minLen:
		return Invalid(place(at), "must have at least %d characters", t.minLen)
	case t.maxLen > 0 && n > t.maxLen:
		return Invalid(place(at), "must have at most %d characters", t.maxLen)
	case len(t.enum) > 0 && !slices.Contains(t.enum, s):
		return Invalid(place(at), "must be one of %s", strings.Join(t.enum, ", "))
	}
	dst.SetString(s)
	return nil
}

func (t *Type) decodeArray(dst reflect.Value, raw []byte, at string) (err *fault.Fault) {
	if raw[0] != '[' {
		return Invalid(place(at), "must be an array")
	}
	list := reflect.MakeSlice(t.goType, 0, 4)
	Elements(raw, func(value []byte) bool {
		item := reflect.New(t.elem.goType).Elem()
		if err = t.elem.decodeInto(item, value, at+"["+strconv.Itoa(list.Len())+"]"); err == nil {
			list = reflect.Append(list, item)
		}
		return err == nil
	})
	dst.Set(list)
	return err
}

func (t *Type) decodeDictionary(dst reflect.Value, raw []byte, at string) (err *fault.Fault) {
	if raw[0] != '{' {
		return Invalid(place(at), "must be an object")
	}
	dict := reflect.MakeMap(t.goType)
	Members(raw, func(name, value []byte) bool {
		item := reflect.New(t.elem.goType).Elem()
		if err = t.elem.decodeInto(item, value, join(at, string(name))); err == nil {
			dict.SetMapIndex(reflect.ValueOf(string(name)).Convert(t.goType.Key()), item)
		}
		return err == nil
	})
	dst.Set(dict)
	return err
}

func (t *Type) decodeObject(dst reflect.Value, raw []byte, at string) (err *fault.Fault) {
	if t.short >= 0 && raw[0] == '"' {
		f := &t.fields[t.short]
		slot := dst.FieldByIndex(f.index)
		if f.pointer {
			slot.Set(reflect.New(f.typ.goType))
			slot = slot.Elem()
		}
		return f.typ.decodeInto(slot, raw, at)
	}
	if raw[0] != '{' {
		return Invalid(place(at), "must be an object")
	}
	var seen uint64 // one bit per field; a test checks that no type has more than 64
	Members(raw, func(name, value []byte) bool {
		i := t.find(name)
		if i < 0 {
			err = Invalid(join(at, string(name)), "is not a member of this syscall's data: %s", t.known())
			return false
		}
		seen |= 1 << i
		f := &t.fields[i]
		slot := dst.FieldByIndex(f.index)
		if f.pointer && f.typ.orNull && value[0] == 'n' {
			return true
		}
		if f.pointer {
			slot.Set(reflect.New(f.typ.goType))
			slot = slot.Elem()
		}
		err = f.typ.decodeInto(slot, value, join(at, f.name))
		return err == nil
	})
	if err != nil {
		return err
	}
	for i := range t.fields {
		f := &t.fields[i]
		if f.required && seen&(1<<i) == 0 {
			return Invalid(join(at, f.name), "is missing")
		}
	}
	for _, pair := range t.either {
		if seen&(1<<pair[0]|1<<pair[1]) == 0 {
			return Invalid(join(at, t.fields[pair[0]].name), "is missing")
		}
	}
	return nil
}

func (t *Type) find(name []byte) int {
	for i := range t.fields {
		if t.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// known returns a list of the valid members, for an error.
func (t *Type) known() string {
	if len(t.fields) == 0 {
		return "it takes none"
	}
	list := make([]string, len(t.fields))
	for i, f := range t.fields {
		list[i] = f.name
	}
	return "it takes " + strings.Join(list, ", ")
}

// holds reports whether the number raw is within the bounds of the JSON Schema. f is raw as a float64. Rounding keeps the
// order, so the digits of raw matter only if f equals a bound.
func (t *Type) holds(f float64, raw []byte) bool {
	if f != t.min && f != t.max {
		return t.min < f && f < t.max
	}
	exact := ParseNumber(raw)
	return exact.Compare(numberOf(t.min)) >= 0 && exact.Compare(numberOf(t.max)) <= 0
}

// bounds returns a description of the bounds, without those that are only bounds of the number format.
func (t *Type) bounds() string {
	var s string
	if t.min > -maxSafe {
		s = " of at least " + strconv.FormatFloat(t.min, 'f', -1, 64)
	}
	if t.max < maxSafe {
		if s == "" {
			return " of at most " + strconv.FormatFloat(t.max, 'f', -1, 64)
		}
		s += " and at most " + strconv.FormatFloat(t.max, 'f', -1, 64)
	}
	return s
}

func place(at string) string {
	if at == "" {
		return "data"
	}
	return at
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
