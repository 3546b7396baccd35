package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func newDescribe(a *app) *cobra.Command {
	var failures bool
	cmd := &cobra.Command{
		Use:   "describe [TYPE]",
		Short: "show what the kernel can do, or how one syscall is called",
		Long: `describe asks the kernel for its syscalls. With a TYPE it shows that one: what it
does, what its data and its answer hold.

Where stdout is no terminal, each syscall is a line of JSON with the JSON Schemas of
its data and of its answer.

With --errors it lists the ids of errors instead, which no kernel is asked for: their
codes in both dialects, what they mean, and what to do. With an ID it shows that one.`,
		Example: `  pwos describe
  pwos describe Syscall.Ping
  pwos describe --json Syscall.Ping
  pwos describe --errors
  pwos describe --errors memory.not_found`,
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeType,
		RunE: func(cmd *cobra.Command, args []string) error {
			if failures {
				return a.describeErrors(args)
			}
			return a.describe(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&failures, "errors", false, "list the ids of errors, or show the one given")
	return cmd
}

// describeErrors prints the catalogue of errors, or the entry of one id.
func (a *app) describeErrors(ids []string) error {
	entries := fault.Catalogue()
	if len(ids) == 1 {
		one, ok := fault.Lookup(fault.ID(ids[0]))
		if !ok {
			return fault.NameNotFound.New("no error has the id %s", ids[0]).WithFix(`"pwos describe --errors" lists them`)
		}
		entries = []fault.Entry{one}
	}
	t := new(table)
	t.header("id", "code", "event code", "meaning", "fix")
	for _, e := range entries {
		if a.wantsJSON() {
			o := object(nil).text("id", string(e.ID)).integer("code", int64(e.Kind.Status())).text("event_code", e.Kind.Word()).
				text("meaning", e.Meaning).text("fix", e.Fix)
			if err := a.printLine(o.close()); err != nil {
				return err
			}
			continue
		}
		t.row(string(e.ID), strconv.Itoa(e.Kind.Status()), e.Kind.Word(), e.Meaning, e.Fix)
	}
	return a.printTable(t)
}

func (a *app) describe(ctx context.Context, types []string) (err error) {
	ctx, cancel := a.bound(ctx, usualTimeout)
	defer cancel()
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	if len(types) == 1 {
		raw, err := describeOne(ctx, c, types[0])
		if err != nil {
			return err
		}
		return a.printSyscall(raw)
	}
	if types, err = listSyscalls(ctx, c); err != nil {
		return err
	}
	t := new(table)
	t.header("type", "kind", "description")
	for _, typ := range types {
		raw, err := describeOne(ctx, c, typ)
		if err != nil {
			return err
		}
		if a.wantsJSON() {
			if err := a.printLine(raw); err != nil {
				return err
			}
			continue
		}
		d := memberTexts(raw)
		t.row(d["name"], d["kind"], d["description"])
	}
	return a.printTable(t)
}

// listSyscalls names the syscalls that the kernel lets us call.
func listSyscalls(ctx context.Context, c *client.Client) ([]string, error) {
	list, err := client.Call(ctx, c, schema.SyscallList, &schema.ListInput{})
	if err != nil {
		return nil, err
	}
	return list.Syscalls, nil
}

// describeOne returns what the kernel says about one syscall.
func describeOne(ctx context.Context, c *client.Client, typ string) ([]byte, error) {
	data := object(nil).text("name", typ).close()
	answer, err := c.Call(ctx, schema.KindQuery, "Syscall.Describe", data)
	return answer.Data, err
}

// memberTexts returns the members of an object as a terminal shows them.
func memberTexts(raw schema.Value) map[string]string {
	members, _ := objectOf(raw)
	texts := make(map[string]string, len(members))
	for name, value := range members {
		texts[name] = shown(value)
	}
	return texts
}

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
