package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/schema"
)

// Texts returns a JSON array of strings.
func Texts(all []string) []byte {
	list := []byte{'['}
	for i, text := range all {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, schema.AppendString(nil, text)...)
	}
	return append(list, ']')
}

// Units formats an amount without an exponent: 1000000, not 1e+06.
func Units(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }

// Counts returns a JSON object of whole numbers, sorted by name.
func Counts(of map[string]int) []byte {
	var o Object
	for _, name := range slices.Sorted(maps.Keys(of)) {
		o = o.Integer(name, int64(of[name]))
	}
	return o.Close()
}

// Numbers returns a JSON object of amounts, sorted by name.
func Numbers(of map[string]float64) []byte {
	var o Object
	for _, name := range slices.Sorted(maps.Keys(of)) {
		o = o.Raw(name, []byte(Units(of[name])))
	}
	return o.Close()
}

// Object builds a JSON object, member by member.
type Object []byte

func (o Object) name(name string) Object {
	if o == nil {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	return append(schema.AppendString(o, name), ':')
}

// Text adds a string.
func (o Object) Text(name, value string) Object { return schema.AppendString(o.name(name), value) }

// Raw adds a JSON value.
func (o Object) Raw(name string, value []byte) Object { return append(o.name(name), value...) }

// Integer adds a whole number.
func (o Object) Integer(name string, value int64) Object {
	return strconv.AppendInt(o.name(name), value, 10)
}

// Number adds value rounded to the given digits after the point.
func (o Object) Number(name string, value float64, digits int) Object {
	return strconv.AppendFloat(o.name(name), value, 'f', digits, 64)
}

// Boolean adds true or false.
func (o Object) Boolean(name string, value bool) Object {
	return strconv.AppendBool(o.name(name), value)
}

// Close ends the object, and returns it.
func (o Object) Close() []byte {
	if o == nil {
		return []byte("{}")
	}
	return append(o, '}')
}

// The functions below parse valid JSON.

// Members returns the members of an object; ok is false if raw is not an object.
func Members(raw schema.Value) (members map[string]schema.Value, ok bool) {
	return As[map[string]schema.Value](raw)
}

// Elements returns the elements of an array; ok is false if raw is not an array.
func Elements(raw schema.Value) (elements []schema.Value, ok bool) {
	return As[[]schema.Value](raw)
}

// Text returns the content of a string; ok is false if raw is not a string.
func Text(raw schema.Value) (text string, ok bool) { return As[string](raw) }

// As decodes raw as a T. raw is empty for an absent member.
func As[T any](raw schema.Value) (value T, ok bool) {
	if len(raw) == 0 {
		return value, false
	}
	decoded, err := schema.TypeOf[T]().Decode(raw)
	if err != nil {
		return value, false
	}
	return *decoded.(*T), true
}

// AnswerAs decodes the data of a reply to a syscall.
func AnswerAs[T any](typ string, data schema.Value) (T, error) {
	value, ok := As[T](data)
	if !ok {
		return value, fmt.Errorf("read answer to %s: this version of pwos does not know its form: %.200s", typ, data)
	}
	return value, nil
}
