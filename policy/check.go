package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"github.com/promptware-os/pwos/schema"
)

// Entity types of principals and resources.
const (
	agentType   types.EntityType = "Agent"
	profileType types.EntityType = "Profile"
	originType  types.EntityType = "Origin"
)

// checker checks rules with the syscall table.
type checker struct {
	rules     []*Rule
	validator *validate.Validator
	warnings  []Problem
}

// newChecker creates a schema from the syscall table, and from the tools and registered syscalls that the rules name.
func newChecker(rules []*Rule) *checker {
	c := &checker{rules: rules}
	s := &resolved.Schema{
		Entities: map[types.EntityType]resolved.Entity{
			agentType: {Name: agentType, ParentTypes: []types.EntityType{agentType, profileType}, Shape: resolved.RecordType{
				"pid": {Type: resolved.LongType{}}, "origin": {Type: resolved.StringType{}},
				"key":       {Type: resolved.StringType{}, Optional: true},
				"ancestors": {Type: resolved.SetType{Element: resolved.EntityType(agentType)}},
			}},
			profileType:   {Name: profileType, Shape: resolved.RecordType{}},
			originType:    {Name: originType, Shape: resolved.RecordType{}},
			syscallAction: {Name: syscallAction, Shape: resolved.RecordType{}}, // so that a condition may name them
			toolAction:    {Name: toolAction, Shape: resolved.RecordType{}},
			programAction: {Name: programAction, Shape: resolved.RecordType{}},
		},
		Actions: make(map[types.EntityUID]resolved.Action),
	}
	action := func(uid types.EntityUID, args resolved.RecordType) {
		context := resolved.RecordType{"args": {Type: args}}
		for _, a := range contextAttributes {
			context[types.String(a.name)] = resolved.Attribute{Type: a.typ}
		}
		s.Actions[uid] = resolved.Action{Entity: types.Entity{UID: uid}, AppliesTo: &resolved.AppliesTo{
			Principals: []types.EntityType{agentType}, Resources: []types.EntityType{originType}, Context: context,
		}}
	}
	registered := shapes()[schema.SyscallInvoke.Row()].record
	action(types.NewEntityUID(toolAction, ""), toolArgs) // tools that no rule names
	action(types.NewEntityUID(syscallAction, ""), registered)
	programs := shapes()[schema.ProgramExec.Row()].record
	action(everyProgram, programs)
	for row, shape := range shapes() {
		if row != schema.SyscallInvoke.Row() && row != schema.ProgramExec.Row() {
			action(types.NewEntityUID(syscallAction, types.String(row.Type)), shape.record)
		}
	}
	for _, r := range rules {
		for uid := range named(r.tree) {
			_, known := s.Actions[uid]
			switch id := string(uid.ID); {
			case known && id != "":
			case uid.Type == programAction && baseName(id):
				action(uid, programs)
			case uid.Type == toolAction && plainTool(id):
				action(uid, toolArgs)
				c.warn(r, "%s is unknown: it is a tool that does not exist yet, or misspelled", uid)
			case uid.Type == syscallAction && schema.Registrable(id) && schema.NearestType(id) == "":
				action(uid, registered)
				c.warn(r, "%s is not a syscall of the kernel: the rule is for a syscall that is registered under this name", uid)
			}
		}
	}
	c.validator = validate.New(s)
	return c
}

// toolArgs describes the members of a tool's call that rules see.
var toolArgs = resolved.RecordType{
	"input": {Type: resolved.StringType{}}, "describe": {Type: resolved.BoolType{}},
	"command": optionalText, "file_path": optionalText,
}

func (c *checker) warn(r *Rule, format string, args ...any) {
	c.warnings = append(c.warnings, Problem{File: r.File, Line: r.Line, Text: fmt.Sprintf(format, args...), Warning: true})
}

// plainTool reports whether a tool may have this name: its path below root, as in Call:PATH, or another URI.
func plainTool(id string) bool {
	if strings.HasPrefix(id, "https://") {
		return true
	}
	return id != "" && !strings.HasPrefix(id, "os/") && !strings.HasPrefix(id, "/") && !strings.Contains(id, "//") && !strings.Contains(id, ":")
}

// baseName reports whether a program may be named so.
func baseName(id string) bool { return id != "" && !strings.Contains(id, "/") }

// named returns the actions that a rule names, in its head and in its conditions.
func named(p *ast.Policy) map[types.EntityUID]bool {
	all := make(map[types.EntityUID]bool)
	for _, uid := range scoped(p) {
		all[uid] = true
	}
	for _, cond := range p.Conditions {
		ast.Inspect(ast.NewNode(cond.Body), func(n ast.IsNode) bool {
			if v, ok := n.(ast.NodeValue); ok {
				if uid, ok := v.Value.(types.EntityUID); ok && (uid.Type == syscallAction || uid.Type == toolAction || uid.Type == programAction) {
					all[uid] = true
				}
			}
			return true
		})
	}
	return all
}

// check finds errors in the rules: wrong types, and rules that can never match.
func (c *checker) check() []Problem {
	problems := c.warnings
	for _, r := range c.rules {
		for _, text := range c.rule(r) {
			problems = append(problems, Problem{File: r.File, Line: r.Line, Text: text})
		}
	}
	return problems
}

func (c *checker) rule(r *Rule) []string {
	for uid := range named(r.tree) {
		if text := c.unknown(uid); text != "" {
			return []string{text}
		}
	}
	if err := c.validator.Policy("", r.tree); err != nil {
		if _, all := r.tree.Action.(ast.ScopeTypeAll); all && len(r.needs) > 0 && len(named(r.tree)) > 0 {
			return []string{"the rule is for every action, but their arguments differ: name its actions in its head, as in " +
				`forbid(principal, action == Syscall::"Memory.Set", resource)`}
		}
		texts := strings.Split(err.Error(), "\n")
		slices.Sort(texts) // the library's order is random
		texts = slices.Compact(texts)
		return texts[:min(len(texts), 3)]
	}
	if texts := impossible(r.tree); len(texts) > 0 {
		return texts
	}
	if c.dead(r.tree) || contradicts(r.tree) {
		return []string{"the rule can never match: its conditions contradict each other"}
	}
	return nil
}

// unknown returns the error for an unknown action.
func (c *checker) unknown(uid types.EntityUID) string {
	id := string(uid.ID)
	switch row, ok := schema.Lookup(id); {
	case uid.Type == syscallAction && ok && row == schema.ProgramExec.Row():
		return fmt.Sprintf(`the rule can never match: %s is for a program that another rule decides about; name the program, such as Program::"git", or Program::"*" for all`, id)
	case uid.Type == programAction && !baseName(id):
		return fmt.Sprintf(`the rule can never match: %q must be the last part of a program's path, such as git, or * for all programs`, id)
	case uid.Type == syscallAction && ok && row.Type != id:
		return fmt.Sprintf("the rule can never match: %s is another name of %s, which rules use", id, row.Type)
	case uid.Type == syscallAction && ok && judged(row) && row != schema.SyscallInvoke.Row():
		return ""
	case uid.Type == syscallAction && ok && provides(row):
		return fmt.Sprintf("the rule can never match: %s is a provider's answer to a call that was already judged; name the provided syscall instead", id)
	case uid.Type == syscallAction && !ok && schema.Registrable(id) && schema.NearestType(id) == "":
		return ""
	case uid.Type == syscallAction && schema.NearestType(id) != "":
		return fmt.Sprintf("the rule can never match: no syscall %s; did you mean %s?", id, schema.NearestType(id))
	case uid.Type == syscallAction:
		return fmt.Sprintf("the rule can never match: no syscall %s", id)
	case uid.Type == toolAction && !plainTool(id):
		return fmt.Sprintf("the rule can never match: %q must be a path below root without os and without a leading slash, such as tools/sum", id)
	}
	return ""
}

// dead reports whether the conditions of a valid rule are false for every call because of their types. The library then
// does not check later conditions, which would hide errors.
func (c *checker) dead(p *ast.Policy) bool {
	if len(p.Conditions) == 0 {
		return false
	}
	var all *ast.Node
	for _, cond := range p.Conditions {
		body := ast.NewNode(cond.Body)
		if cond.Condition == ast.ConditionUnless {
			body = ast.Not(body)
		}
		if all != nil {
			body = all.And(body)
		}
		all = &body
	}
	probe := *p
	wrong := all.And(ast.Long(1).LessThan(ast.String("")))
	probe.Conditions = []ast.ConditionType{{Condition: ast.ConditionWhen, Body: wrong.AsIsNode()}}
	return c.validator.Policy("", &probe) == nil
}

// impossible finds comparisons with texts that a member never has, because it is normalized.
func impossible(p *ast.Policy) (texts []string) {
	for _, cond := range p.Conditions {
		ast.Inspect(ast.NewNode(cond.Body), func(n ast.IsNode) bool {
			var of ast.IsNode
			var text string
			switch n := n.(type) {
			case ast.NodeTypeEquals:
				other, value := compared(n.Left, n.Right)
				if is, ok := value.(types.String); ok {
					of, text = other, string(is)
				}
			case ast.NodeTypeLike:
				pattern := string(n.Value.MarshalCedar())
				of, text = n.Arg, strings.TrimSuffix(strings.TrimPrefix(pattern, `"`), `"`)
			}
			arg, name, ok := attribute(of)
			_, equals := n.(ast.NodeTypeEquals)
			switch {
			case !ok:
			case isArgs(arg) && (name == "key" || name == "prefix") && strings.HasPrefix(text, "/"):
				texts = append(texts, fmt.Sprintf("%q can never match: keys are compared without their leading slash, as %q", text, text[1:]))
			case isArgs(arg) && name == "host" && text != strings.ToLower(text):
				texts = append(texts, fmt.Sprintf("%q can never match: hosts are compared in lower case, as %q", text, strings.ToLower(text)))
			case isVariable(arg, "context") && equals:
				if a := neededAttribute("." + string(name)); a != nil {
					if why := a.impossible(text); why != "" {
						texts = append(texts, why)
					}
				}
			}
			return true
		})
	}
	return texts
}
