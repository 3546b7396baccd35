package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// MemberTexts returns the members of an object as text for a terminal.
func MemberTexts(raw schema.Value) map[string]string {
	members, _ := Members(raw)
	texts := make(map[string]string, len(members))
	for name, value := range members {
		texts[name] = Shown(value)
	}
	return texts
}

// SyscallText formats the description of a syscall in lines of at most width characters.
func SyscallText(raw schema.Value, width int) string {
	members, _ := Members(raw)
	texts := MemberTexts(raw)
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n%s\n", texts["name"], texts["kind"], Hang("", texts["description"], width))
	for _, side := range []struct{ title, schema string }{{"Data", "input"}, {"Answer", "output"}} {
		t := membersTable(members[side.schema])
		t.Width = width
		fmt.Fprintf(&b, "\n%s:\n%s", side.title, t.Text())
	}
	return b.String()
}

// membersTable lists the members in the JSON Schema of an object, required ones first. Nested members are indented
// below their parent.
func membersTable(jsonSchema schema.Value) *Table {
	t := new(Table)
	addMembers(t, "  ", jsonSchema)
	if described, _ := Members(jsonSchema); len(t.Rows) == 0 && described["type"] == nil {
		doc, _ := Text(described["description"])
		t.Row(strings.TrimRight("  (any JSON value)  "+Escaped(doc), " "))
	} else if len(t.Rows) == 0 {
		t.Row("  (nothing)")
	}
	return t
}

func addMembers(t *Table, indent string, jsonSchema schema.Value) {
	described, _ := Members(jsonSchema)
	properties, _ := Members(described["properties"])
	var required []string
	list, _ := Elements(described["required"])
	for _, item := range list {
		if name, ok := Text(item); ok {
			required = append(required, name)
		}
	}
	for _, name := range required {
		addMember(t, indent, name, "required", properties[name])
		delete(properties, name)
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		addMember(t, indent, name, "optional", properties[name])
	}
}

func addMember(t *Table, indent, name, presence string, jsonSchema schema.Value) {
	described, _ := Members(jsonSchema)
	doc, _ := Text(described["description"])
	t.Row(indent+Escaped(name), typeName(jsonSchema), presence, strings.TrimSpace(Escaped(doc)+limits(described)))
	if items, ok := described["items"]; ok {
		jsonSchema = items
	}
	addMembers(t, indent+"  ", jsonSchema)
}

// typeName describes the type of a JSON Schema in a word or two.
func typeName(jsonSchema schema.Value) string {
	described, _ := Members(jsonSchema)
	name, ok := Text(described["type"])
	switch {
	case !ok:
		return "any"
	case name == "array":
		return "list of " + typeName(described["items"])
	}
	return Escaped(name)
}

// limits describes the constraints of a JSON Schema, except the type.
func limits(described map[string]schema.Value) string {
	var said string
	if words, ok := Elements(described["enum"]); ok {
		var list []string
		for _, word := range words {
			list = append(list, Shown(word))
		}
		said += " One of: " + strings.Join(list, ", ") + "."
	}
	// A bound of the number's format is left out.
	if low := string(described["minimum"]); low != "" && len(low) < 10 {
		said += " At least " + low + "."
	}
	if high := string(described["maximum"]); high != "" && len(high) < 10 {
		said += " At most " + high + "."
	}
	return said
}
