package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// printSyscall writes a description as the kernel gave it, or so that a person can read it.
func (a *app) printSyscall(raw schema.Value) error {
	if a.wantsJSON() {
		return a.printLine(raw)
	}
	members, _ := objectOf(raw)
	texts := memberTexts(raw)
	_, err := fmt.Fprintf(a.stdout, "%s (%s)\n%s\n", texts["name"], texts["kind"], hang("", texts["description"], a.width()))
	for _, side := range []struct{ title, schema string }{{"Data", "input"}, {"Answer", "output"}} {
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "\n%s:\n", side.title)
		}
		if err == nil {
			err = a.printTable(membersTable(members[side.schema]))
		}
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// membersTable lists the members that a JSON Schema of an object knows, required ones first, in its order; below each the
// members that it has itself, further in.
func membersTable(jsonSchema schema.Value) *table {
	t := new(table)
	addMembers(t, "  ", jsonSchema)
	if described, _ := objectOf(jsonSchema); len(t.rows) == 0 && described["type"] == nil {
		doc, _ := textOf(described["description"])
		t.row(strings.TrimRight("  (any JSON value)  "+escaped(doc), " "))
	} else if len(t.rows) == 0 {
		t.row("  (nothing)")
	}
	return t
}

func addMembers(t *table, indent string, jsonSchema schema.Value) {
	described, _ := objectOf(jsonSchema)
	properties, _ := objectOf(described["properties"])
	var required []string
	list, _ := arrayOf(described["required"])
	for _, item := range list {
		if name, ok := textOf(item); ok {
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

func addMember(t *table, indent, name, presence string, jsonSchema schema.Value) {
	described, _ := objectOf(jsonSchema)
	doc, _ := textOf(described["description"])
	t.row(indent+escaped(name), typeName(jsonSchema), presence, strings.TrimSpace(escaped(doc)+limits(described)))
	if items, ok := described["items"]; ok {
		jsonSchema = items
	}
	addMembers(t, indent+"  ", jsonSchema)
}

// typeName says what a JSON Schema allows, in a word or two.
func typeName(jsonSchema schema.Value) string {
	described, _ := objectOf(jsonSchema)
	name, ok := textOf(described["type"])
	switch {
	case !ok:
		return "any"
	case name == "array":
		return "list of " + typeName(described["items"])
	}
	return escaped(name)
}

// limits says what a JSON Schema demands beyond the type.
func limits(described map[string]schema.Value) string {
	var said string
	if words, ok := arrayOf(described["enum"]); ok {
		var list []string
		for _, word := range words {
			list = append(list, shown(word))
		}
		said += " One of: " + strings.Join(list, ", ") + "."
	}
	// A bound that the number's format has anyway says nothing.
	if low := string(described["minimum"]); low != "" && len(low) < 10 {
		said += " At least " + low + "."
	}
	if high := string(described["maximum"]); high != "" && len(high) < 10 {
		said += " At most " + high + "."
	}
	return said
}
