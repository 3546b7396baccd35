package sdk

import (
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// kind is the kind of a shape.
type kind uint8

const (
	anything kind = iota
	text
	integer
	number
	boolean
	list       // of elements
	dictionary // of elements with any name
	object     // with known members
	either     // one of several shapes
)

// shape is a JSON Schema as a type. It leaves out bounds, which a type cannot express. An unknown schema allows any
// value.
type shape struct {
	kind     kind
	nullable bool
	words    []string // text: its possible values; empty: any
	element  *shape
	choices  []*shape
	Members  []*member
	Name     string // object: of its type
}

// member is a member of an object.
type member struct {
	Name, Doc string
	Required  bool
	Shape     *shape
}

// shapeOf converts a JSON Schema.
func shapeOf(raw schema.Value) *shape {
	s := &shape{}
	if len(raw) == 0 || raw[0] != '{' {
		return s
	}
	parts := membersOf(raw)
	word := typeOf(parts["type"], &s.nullable)
	switch word {
	case "string":
		s.kind, s.words = text, texts(parts["enum"])
	case "integer":
		s.kind = integer
	case "number":
		s.kind = number
	case "boolean":
		s.kind = boolean
	case "array":
		s.kind, s.element = list, shapeOf(parts["items"])
	case "object":
		s.readObject(parts)
	case "":
		for _, one := range elements(parts["anyOf"]) {
			s.kind, s.choices = either, append(s.choices, shapeOf(one))
		}
	}
	return s
}

// readObject converts the schema of an object. An object without known members is a dictionary, unless it must be
// empty.
func (s *shape) readObject(parts map[string]schema.Value) {
	required := make(map[string]bool)
	for _, name := range texts(parts["required"]) {
		required[name] = true
	}
	s.kind = object
	if properties := parts["properties"]; len(properties) > 0 && properties[0] == '{' {
		jsontype.Members(properties, func(name, value []byte) bool {
			m := &member{Name: string(name), Required: required[string(name)], Shape: shapeOf(value)}
			if value[0] == '{' {
				m.Doc = content(membersOf(value)["description"])
			}
			s.Members = append(s.Members, m)
			return true
		})
	}
	if rest := parts["additionalProperties"]; len(s.Members) == 0 && string(rest) != "false" {
		s.kind, s.element = dictionary, shapeOf(rest)
	}
}

// typeOf returns the one named type, alone or with null. It returns "" for none or several.
func typeOf(raw schema.Value, nullable *bool) (word string) {
	if len(raw) > 0 && raw[0] == '"' {
		return content(raw)
	}
	for _, one := range texts(raw) {
		switch {
		case one == "null":
			*nullable = true
		case word != "":
			return ""
		default:
			word = one
		}
	}
	return word
}

// membersOf returns the members of an object.
func membersOf(raw schema.Value) map[string]schema.Value {
	parts := make(map[string]schema.Value)
	jsontype.Members(raw, func(name, value []byte) bool {
		parts[string(name)] = value
		return true
	})
	return parts
}

// elements returns the elements of an array, none for any other value.
func elements(raw schema.Value) (list []schema.Value) {
	if len(raw) > 0 && raw[0] == '[' {
		jsontype.Elements(raw, func(value []byte) bool {
			list = append(list, value)
			return true
		})
	}
	return list
}

// texts returns the elements of an array of strings, none for any other value.
func texts(raw schema.Value) (list []string) {
	for _, one := range elements(raw) {
		if one[0] != '"' {
			return nil
		}
		list = append(list, content(one))
	}
	return list
}

// content returns the content of a string, "" for any other value.
func content(raw schema.Value) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return string(jsontype.Unquote(raw))
}
