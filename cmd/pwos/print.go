package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// printValue writes one JSON value: as a line of JSON, or as a table for people.
func (a *app) printValue(raw schema.Value) error {
	if a.wantsJSON() {
		return a.printLine(raw)
	}
	return tableOf(raw).write(a.stdout)
}

// printLine writes raw as a line.
func (a *app) printLine(raw []byte) error {
	if _, err := a.stdout.Write(append(raw[:len(raw):len(raw)], '\n')); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// tableOf arranges any value: a list of objects with a column a member, another list with a line an element, an object with a
// line a member. An object around nothing but one list is taken for that list.
func tableOf(raw schema.Value) *table {
	members, ok := objectOf(raw)
	if !ok {
		return listTable(raw)
	}
	names := slices.Sorted(maps.Keys(members))
	if len(names) == 1 {
		if _, ok := arrayOf(members[names[0]]); ok {
			return listTable(members[names[0]])
		}
	}
	t := new(table)
	for _, name := range names {
		t.row(escaped(name), shown(members[name]))
	}
	return t
}

func listTable(raw schema.Value) *table {
	t := new(table)
	list, ok := arrayOf(raw)
	if !ok {
		t.row(shown(raw))
		return t
	}
	columns := columnsOf(list)
	if columns == nil {
		for _, element := range list {
			t.row(shown(element))
		}
		return t
	}
	t.header(columns...)
	for _, element := range list {
		members, _ := objectOf(element)
		var cells []string
		for _, name := range columns {
			cell := ""
			if value, ok := members[name]; ok {
				cell = shown(value)
			}
			cells = append(cells, cell)
		}
		t.row(cells...)
	}
	return t
}

// columnsOf returns the names of all members of a list of objects, sorted; nil where it is another list.
func columnsOf(list []schema.Value) []string {
	all := make(map[string]bool)
	for _, element := range list {
		members, ok := objectOf(element)
		if !ok {
			return nil
		}
		for name := range members {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// closeInto closes c, and reports its failure where nothing worse happened.
func closeInto(err *error, c io.Closer) {
	if closeErr := c.Close(); closeErr != nil {
		*err = errors.Join(*err, closeErr)
	}
}
