package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema/fault"
)

// invalid is a data fault at the named member (PROTOCOL 3: it names the member).
func invalid(field, format string, args ...any) *Error {
	field = clip(field)
	return fault.WireInvalidInput.New("Invalid input: "+field+" "+format, args...).At(field)
}

// Decode reads a message's data, valid JSON, as the Go type behind t and returns a pointer to it. Null data stands for
// an empty object. What does not fit is an InvalidInput error that names the member. Raw values alias data.
func (t *Type) Decode(data []byte) (any, *Error) {
	dst := reflect.New(t.goType)
	if t.shape == object && string(data) == "null" {
		data = []byte("{}")
	}
	if err := t.decode(dst.Elem(), data, ""); err != nil {
		return nil, err
	}
	return dst.Interface(), nil
}

func (t *Type) decode(dst reflect.Value, raw []byte, at string) *Error {
	switch t.shape {
	case anything:
		dst.SetBytes(raw)
		return nil
	case text:
		return t.decodeText(dst, raw, at)
	case integer:
		n, ok := parseInteger(raw)
		if !ok || float64(n) < t.min || float64(n) > t.max {
			return invalid(place(at), "must be an integer%s", t.bounds())
		}
		dst.SetInt(n)
		return nil
	case number:
		f, ok := parseNumber(raw)
		if !ok || !t.holds(f, raw) {
			return invalid(place(at), "must be a finite number%s", t.bounds())
		}
		dst.SetFloat(f)
		return nil
	case boolean:
		if raw[0] != 't' && raw[0] != 'f' {
			return invalid(place(at), "must be true or false")
		}
		dst.SetBool(raw[0] == 't')
		return nil
	case array:
		return t.decodeArray(dst, raw, at)
	case object:
		return t.decodeObject(dst, raw, at)
	default:
		return t.decodeDictionary(dst, raw, at)
	}
}

func (t *Type) decodeText(dst reflect.Value, raw []byte, at string) *Error {
	switch {
	case raw[0] == 'n' && t.orNull:
		dst.SetString("")
		return nil
	case raw[0] != '"':
		return invalid(place(at), "must be a string")
	}
	s := string(unquote(raw))
	switch n := utf8.RuneCountInString(s); {
	case n < t.minLen && n == 0:
		return invalid(place(at), "must not be empty")
	case n < t.minLen:
		return invalid(place(at), "must have at least %d characters", t.minLen)
	case t.maxLen > 0 && n > t.maxLen:
		return invalid(place(at), "must have at most %d characters", t.maxLen)
	case len(t.enum) > 0 && !slices.Contains(t.enum, s):
		return invalid(place(at), "must be one of %s", strings.Join(t.enum, ", "))
	}
	dst.SetString(s)
	return nil
}

func (t *Type) decodeArray(dst reflect.Value, raw []byte, at string) (fault *Error) {
	if raw[0] != '[' {
		return invalid(place(at), "must be an array")
	}
	list := reflect.MakeSlice(t.goType, 0, 4)
	elements(raw, func(value []byte) bool {
		item := reflect.New(t.elem.goType).Elem()
		if fault = t.elem.decode(item, value, at+"["+strconv.Itoa(list.Len())+"]"); fault == nil {
			list = reflect.Append(list, item)
		}
		return fault == nil
	})
	dst.Set(list)
	return fault
}

func (t *Type) decodeDictionary(dst reflect.Value, raw []byte, at string) (fault *Error) {
	if raw[0] != '{' {
		return invalid(place(at), "must be an object")
	}
	dict := reflect.MakeMap(t.goType)
	members(raw, func(name, value []byte) bool {
		item := reflect.New(t.elem.goType).Elem()
		if fault = t.elem.decode(item, value, join(at, string(name))); fault == nil {
			dict.SetMapIndex(reflect.ValueOf(string(name)).Convert(t.goType.Key()), item)
		}
		return fault == nil
	})
	dst.Set(dict)
	return fault
}

func (t *Type) decodeObject(dst reflect.Value, raw []byte, at string) (fault *Error) {
	if t.short >= 0 && raw[0] == '"' {
		f := &t.fields[t.short]
		slot := dst.FieldByIndex(f.index)
		if f.pointer {
			slot.Set(reflect.New(f.typ.goType))
			slot = slot.Elem()
		}
		return f.typ.decode(slot, raw, at)
	}
	if raw[0] != '{' {
		return invalid(place(at), "must be an object")
	}
	var seen uint64 // a bit a field; a test keeps the types within 64
	members(raw, func(name, value []byte) bool {
		i := t.find(name)
		if i < 0 {
			fault = invalid(join(at, string(name)), "is not a member of this syscall's data: %s", t.known())
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
		fault = f.typ.decode(slot, value, join(at, f.name))
		return fault == nil
	})
	if fault != nil {
		return fault
	}
	for i := range t.fields {
		if t.fields[i].required && seen&(1<<i) == 0 {
			return invalid(join(at, t.fields[i].name), "is missing")
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

// known lists the members that there are, for who misspelt one.
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

// holds reports whether the number raw, which is f when rounded, lies within the bounds as the JSON Schema shows them.
// Rounding keeps the order, so that digits decide only where f falls on a bound.
func (t *Type) holds(f float64, raw []byte) bool {
	if f != t.min && f != t.max {
		return t.min < f && f < t.max
	}
	exact := parseDecimal(raw)
	return exact.compare(decimalOf(t.min)) >= 0 && exact.compare(decimalOf(t.max)) <= 0
}

// bounds says the limits that are not simply those of the number format.
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
