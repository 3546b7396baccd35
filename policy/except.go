package policy

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// longestText bounds a text in an exception, in bytes.
const longestText = 2048

// Except returns the files with the narrowest change that allows the call of an entry, which must follow those that p has
// judged. Each rule that decides against the call gets an exception for its agent, its syscall and the members that the
// rule reads. Except also returns the changed rules; none if the call is already allowed.
func (p *Past) Except(files []File, e *Entry) ([]File, []*Rule, error) {
	msg, failed := schema.Decode(e.Request, schema.OsMessage)
	if failed != nil {
		return nil, nil, failed
	}
	row, ok := schema.Lookup(msg.Type)
	if !ok || !judged(row) || e.PID == kernel.Operator {
		return nil, nil, errors.New("policy does not judge this entry: name the refused call of an agent")
	}
	in, failed := row.Input().Decode(msg.Data)
	if failed != nil {
		return nil, nil, failed
	}
	call := p.call(e, msg, row, in)
	files = slices.Clone(files)
	var changed []*Rule
	for {
		set, problems := Compile(files)
		if set == nil {
			if len(problems) == 0 {
				return files, changed, nil
			}
			return nil, nil, fmt.Errorf("the exception is not valid: %s", problems[0])
		}
		judge := *p.judge
		judge.Set = set
		d := judge.Decide(call)
		switch {
		case d.Rule == nil:
			return files, changed, nil
		case d.Failed != nil:
			return nil, nil, fmt.Errorf("the rule at %s cannot be evaluated for this call, and an exception would not help: %w", d.Rule.At(), d.Failed)
		case slices.ContainsFunc(changed, func(r *Rule) bool { return r.ID == d.Rule.ID }):
			return nil, nil, fmt.Errorf("no exception to the rule at %s allows the call", d.Rule.At())
		case row.Input().Withholds(in, true) && slices.ContainsFunc(d.Rule.needs, func(name string) bool {
			return !strings.HasPrefix(name, ".") && name != "key" && name != "url" && name != "host"
		}):
			return nil, nil, fmt.Errorf("the journal does not keep all data that the rule at %s reads", d.Rule.At())
		}
		clause, err := judge.exception(call, d)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == d.Rule.File })
		if files[i].Text, err = insert(files[i], set, d.Rule, clause); err != nil {
			return nil, nil, err
		}
		changed = append(changed, d.Rule)
	}
}

// exception returns the condition that exempts a call from the rule that decided about it.
func (j *Judge) exception(call *kernel.Call, d Decision) (string, error) {
	r, as := d.Rule, j.syscall(call)
	if in, ok := call.Input.(*schema.ProgramExecInput); ok {
		as = j.program(call, in)
	}
	if t, ok := j.tool(call); ok && slices.Contains(scoped(r.tree), t.uid) {
		as = t
	}
	if d.named != nil {
		call, as = j.named(call, d.named)
	}
	needs := make(map[string]bool)
	for _, name := range r.needs {
		needs[name] = true
	}
	args, err := as.args(needs)
	if err != nil {
		return "", err
	}
	who := subject{judge: j, call: call, process: j.Processes.Process(call.PID)}
	terms := []string{"principal == " + who.uid().String()}
	if len(scoped(r.tree)) != 1 {
		terms = append(terms, "action == "+as.uid.String())
	}
	for _, name := range r.needs {
		value, there := args.Get(types.String(name))
		at := "context.args." + name
		switch {
		case strings.HasPrefix(name, "."):
			if a := neededAttribute(name); a != nil && a.exact {
				terms = append(terms, "context"+name+" == "+string(a.of(call).MarshalCedar()))
			}
		case !there:
			terms = append(terms, "!(context.args has "+name+")")
		case len(value.MarshalCedar()) > longestText:
			return "", fmt.Errorf("%s is too long for a comparison", at)
		default:
			terms = append(terms, "context.args has "+name, at+" == "+string(value.MarshalCedar()))
		}
	}
	return "unless { " + strings.Join(terms, " && ") + " }", nil
}

// insert returns the text of a file with a clause before the end of a rule.
func insert(f File, set *Set, r *Rule, clause string) ([]byte, error) {
	from, to := r.tree.Position.Offset, len(f.Text)
	count := 0
	for _, other := range set.Rules {
		if other.File != r.File {
			continue
		}
		count++
		if at := other.tree.Position.Offset; at > from {
			to = min(to, at)
		}
	}
	for end := to; ; { // comments with semicolons may follow the rule
		end = bytes.LastIndexByte(f.Text[from:end], ';')
		if end < 0 {
			return nil, fmt.Errorf("cannot find the end of the rule at %s", r.At())
		}
		end += from
		text := slices.Concat(f.Text[:end], []byte("\n"+clause), f.Text[end:])
		next, _ := Compile([]File{{f.Name, text}})
		if next != nil && len(next.Rules) == count && slices.ContainsFunc(next.Rules, func(n *Rule) bool {
			return n.tree.Position.Offset == from && len(n.tree.Conditions) == len(r.tree.Conditions)+1
		}) {
			return text, nil
		}
	}
}
