package policy

import (
	"errors"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Forms normalize the names in a call to the spelling that its handler uses. A name that cannot be parsed stays unchanged,
// and the handler refuses it.
type Forms struct {
	// URL returns an address in the form that is fetched, and its host.
	URL func(raw string) (normal, host string, ok bool)
	// Names resolves names of resources and tools; nil: there are no names.
	Names kernel.Names
}

// Judge judges calls by a Set.
type Judge struct {
	*Set
	Forms     Forms
	Processes kernel.Processes
	Registry  kernel.Registry // finds the tool that provides a registered syscall; nil: nothing is registered
}

// Decision is the verdict of the rules on a call. The zero Decision allows it.
type Decision struct {
	Rule   *Rule // the rule that decided; nil: none
	Failed error // why the evaluation of the rule failed, which denies the call; nil: the rule matched

	named []string // the program, with its arguments, that a tool's command names and the rule is about; nil: the rule is about the call
}

// action is one view of a call. The call of a tool is also that of a syscall.
type action struct {
	uid     types.EntityUID
	args    func(needs map[string]bool) (types.Record, *unfitError)
	unknown []string // members of args that are not known yet: rules that read one do not decide
}

// unfitError is the reason why a member of args that a rule reads cannot be computed.
type unfitError struct {
	member string
	why    error
}

func (e *unfitError) Error() string {
	return "context.args." + e.member + " cannot be judged: " + e.why.Error()
}

func (e *unfitError) Unwrap() error { return e.why }

// Decide judges a call with PID, Origin and Tick set. A rule that forbids takes precedence over one that fails, and a
// failing one over one that asks. Of several of a kind, the first in the order of the files decides.
func (j *Judge) Decide(call *kernel.Call) Decision {
	if in, ok := call.Input.(*schema.ProgramExecInput); ok {
		if in.Hidden && j.executes != nil {
			return Decision{Rule: j.executes, Failed: errors.New("the process lets nobody read what it executes")}
		}
		return j.evaluate(call, j.program(call, in))
	}
	decided := j.evaluate(call, j.syscall(call))
	if sent := sendingOf(call); sent != nil {
		if d := j.evaluate(sent, j.syscall(sent)); d.before(decided, call) {
			decided = d
		}
	}
	if t, ok := j.tool(call); ok {
		if d := j.evaluate(call, t); d.before(decided, call) {
			decided = d
		}
	}
	if in, ok := call.Input.(*schema.ToolUseInput); ok && j.executes != nil {
		for _, argv := range commandsOf(in) {
			if d := j.evaluateNamed(call, argv); d.before(decided, call) {
				decided = d
			}
		}
	}
	return decided
}

// sendingOf returns the Syscall.SendMsg of a message that arrives from another kernel, or nil for other calls. Rules about
// sending apply to it too.
func sendingOf(call *kernel.Call) *kernel.Call {
	in, ok := call.Input.(*schema.AcceptInput)
	if !ok {
		return nil
	}
	sent, message := *call, &schema.SendMsgInput{ReceiverPID: in.ReceiverPID, Payload: in.Payload}
	if in.Intent != "" {
		message.Intent = &in.Intent
	}
	if in.Priority != "" {
		message.Priority = &in.Priority
	}
	sent.Syscall, sent.Input = schema.SyscallSendMsg.Row(), message
	return &sent
}

// more reports whether a rule asks about calls that exceed a budget.
func (d Decision) more(call *kernel.Call) bool {
	return d.rank() == 1 && call.Exhausted != "" && slices.Contains(d.Rule.needs, exhausted)
}

// before reports whether d takes precedence over another decision.
func (d Decision) before(other Decision, call *kernel.Call) bool {
	if d.rank() != other.rank() {
		return d.rank() > other.rank()
	}
	return d.more(call) && !other.more(call)
}

func (d Decision) rank() int {
	switch {
	case d.Rule == nil:
		return 0
	case d.Failed != nil:
		return 2
	case d.Rule.Ask > 0:
		return 1
	}
	return 3
}

func (j *Judge) evaluate(call *kernel.Call, a action) Decision {
	set, ok := j.byAction[a.uid]
	switch {
	case ok:
	case a.uid.Type == programAction:
		set = j.programs
	default:
		set = j.others
	}
	if len(set.rules) == 0 {
		return Decision{}
	}
	args, err := a.args(set.needs)
	if err != nil {
		return Decision{Rule: set.rules[slices.IndexFunc(set.rules, func(r *Rule) bool { return slices.Contains(r.needs, err.member) })], Failed: err}
	}
	who := &subject{judge: j, call: call, process: j.Processes.Process(call.PID)}
	request := cedar.Request{
		Principal: who.uid(), Action: a.uid, Resource: types.NewEntityUID(originType, types.String(call.Origin)),
	}
	context := types.RecordMap{"args": args}
	for i := range contextAttributes {
		if a := &contextAttributes[i]; set.needs[a.need] {
			context[types.String(a.name)] = a.of(call)
		}
	}
	request.Context = types.NewRecord(context)
	_, found := cedar.Authorize(set, who, request)
	if len(found.Reasons) == 0 && len(found.Errors) == 0 { // the usual case
		return Decision{}
	}
	var decided Decision
	for _, r := range set.rules {
		if slices.ContainsFunc(a.unknown, func(name string) bool { return slices.Contains(r.needs, name) }) {
			continue
		}
		d := Decision{Rule: r}
		for _, failed := range found.Errors {
			if failed.PolicyID == cedar.PolicyID(r.ID) {
				d.Failed = errors.New(failed.Message)
			}
		}
		matched := d.Failed != nil
		for _, reason := range found.Reasons {
			matched = matched || reason.PolicyID == cedar.PolicyID(r.ID)
		}
		if matched && d.before(decided, call) {
			decided = d
		}
	}
	return decided
}

// syscall returns the view of a call as a syscall.
func (j *Judge) syscall(call *kernel.Call) action {
	name := call.Syscall.Type
	if in, ok := call.Input.(*schema.InvokeInput); ok {
		name = in.Name
	}
	return action{uid: types.NewEntityUID(syscallAction, types.String(name)), args: func(needs map[string]bool) (types.Record, *unfitError) {
		return j.args(call, needs)
	}}
}

// program returns the view of an exec, by the last part of the path as it was requested.
func (j *Judge) program(call *kernel.Call, in *schema.ProgramExecInput) action {
	return action{uid: types.NewEntityUID(programAction, types.String(path.Base(in.Path))), args: func(needs map[string]bool) (types.Record, *unfitError) {
		if in.Cut && needs["argv"] {
			return types.Record{}, &unfitError{"argv", errors.New("it is longer than the kernel reads")}
		}
		return j.args(call, needs)
	}}
}

// named returns a program that a tool's command names as the call that its exec will be, and the view of that. Directory and step are not
// known before, nor is where a search in PATH finds it.
func (j *Judge) named(call *kernel.Call, argv []string) (*kernel.Call, action) {
	in := &schema.ProgramExecInput{Path: argv[0], Argv: argv}
	exec := *call
	exec.Syscall, exec.Input, exec.Caller.Via = schema.ProgramExec.Row(), in, "channel"
	a := j.program(&exec, in)
	if a.unknown = []string{"cwd", "step"}; !path.IsAbs(argv[0]) {
		a.unknown = append(a.unknown, "path")
	}
	return &exec, a
}

// evaluateNamed judges a program that a tool's command names.
func (j *Judge) evaluateNamed(call *kernel.Call, argv []string) Decision {
	d := j.evaluate(j.named(call, argv))
	d.named = argv
	return d
}

// tool returns the view of a call as the tool that it runs, if there is one: by its path, as a registered syscall, or as a
// tool of a host.
func (j *Judge) tool(call *kernel.Call) (a action, ok bool) {
	switch in := call.Input.(type) {
	case *schema.CallInput:
		return toolAt(j.resolve(call, in.Syscall), in.Describe != nil && *in.Describe, in.Input, nil), true
	case *schema.ToolUseInput:
		return toolAt(in.Host+"/"+in.Tool, false, func() []byte { return in.Input }, in.Cut), true
	case *schema.InvokeInput:
		if j.Registry == nil {
			return a, false
		}
		if r := j.Registry.Registered(call.Origin, in.Name); r != nil && r.Path != nil {
			return toolAt(j.resolveAt(*r.Path, ""), false, func() []byte { return in.Data }, nil), true
		}
	}
	return a, false
}

// toolAt returns the call of the named tool.
func toolAt(uri string, describe bool, input func() []byte, cut []string) action {
	uid := types.NewEntityUID(toolAction, types.String(strings.TrimPrefix(uri, "os:///")))
	return action{uid: uid, args: func(needs map[string]bool) (types.Record, *unfitError) {
		all := types.RecordMap{"describe": types.Boolean(describe)}
		if needs["input"] {
			text, err := canonical(input())
			if err != nil {
				return types.Record{}, &unfitError{"input", err}
			}
			all["input"] = text
		}
		if err := addBeside(all, needs, input(), cut); err != nil {
			return types.Record{}, err
		}
		return types.NewRecord(all), nil
	}}
}

// addBeside adds members of a tool's input that rules read: texts unchanged, other values in canonical form. A member that
// was cut cannot be judged.
func addBeside(all types.RecordMap, needs map[string]bool, input []byte, cut []string) *unfitError {
	long := errors.New("it is too long: the hook sent only its beginning")
	if needs["input"] && len(cut) > 0 {
		return &unfitError{"input", long}
	}
	for _, name := range beside {
		if !needs[name] {
			continue
		}
		if slices.Contains(cut, name) || slices.Contains(cut, "*") {
			return &unfitError{name, long}
		}
		raw := memberOf(input, name)
		var value types.Value
		var err error
		switch {
		case raw == nil:
			continue
		case raw[0] == '"':
			value = types.String(jsontype.Unquote(raw))
		default:
			value, err = canonical(raw)
		}
		if err != nil {
			return &unfitError{name, err}
		}
		all[types.String(name)] = value
	}
	return nil
}

// memberOf returns a member of a valid JSON value, or nil.
func memberOf(value []byte, name string) (found []byte) {
	if at := jsontype.SkipSpace(value, 0); at == len(value) || value[at] != '{' {
		return nil
	}
	jsontype.Members(value, func(n, v []byte) bool {
		if string(n) == name {
			found = v
		}
		return found == nil
	})
	return found
}

// resolve returns the canonical form of a name relative to what the caller has adopted.
func (j *Judge) resolve(call *kernel.Call, name string) string {
	if j.Forms.Names == nil {
		return name
	}
	return j.resolveAt(name, j.Forms.Names.Base(call.PID, call.Origin))
}

// resolveAt returns the canonical form of a name relative to another; "" means none.
func (j *Judge) resolveAt(name, base string) string {
	if j.Forms.Names == nil {
		return name
	}
	if uri, err := j.Forms.Names.Resolve(name, base); err == nil {
		return uri
	}
	return name
}

// args returns the members of the input that rules read.
func (j *Judge) args(call *kernel.Call, needs map[string]bool) (types.Record, *unfitError) {
	shape := shapes()[call.Syscall]
	if shape == nil || len(needs) == 0 {
		return types.Record{}, nil
	}
	all := make(types.RecordMap, len(needs))
	in := reflect.ValueOf(call.Input).Elem()
	for i := range shape.members {
		m := &shape.members[i]
		if !needs[m.name] && !(m.form == urlForm && needs["host"]) {
			continue
		}
		if m.ref {
			if !in.FieldByIndex(m.index).IsZero() {
				return types.Record{}, &unfitError{m.name, errors.New("it is sent by reference: send the value itself")}
			}
			continue
		}
		value, err := m.value(in.FieldByIndex(m.index))
		if err != nil {
			return types.Record{}, &unfitError{m.name, err}
		}
		if value == nil {
			continue
		}
		if text, ok := value.(types.String); ok && m.form != asItIs {
			value = types.String(j.form(call, m.form, string(text), all))
		}
		all[types.String(m.name)] = value
	}
	switch in := call.Input.(type) {
	case *schema.HTTPFetchInput:
		if in.Method == nil {
			all["method"] = types.String("GET")
		}
		if needs["bodyRef"] && in.BodyRef != nil && in.BodyContent == nil {
			return types.Record{}, &unfitError{"bodyRef", errors.New("it was not read when the call was made")}
		}
	case *schema.ToolUseInput:
		if err := addBeside(all, needs, in.Input, in.Cut); err != nil {
			return types.Record{}, err
		}
	}
	return types.NewRecord(all), nil
}

// form normalizes a text. For an address it also adds the host.
func (j *Judge) form(call *kernel.Call, f form, text string, beside types.RecordMap) string {
	switch f {
	case keyForm:
		return strings.TrimPrefix(text, "/")
	case nameForm:
		if in, ok := call.Input.(*schema.ResolveInput); ok && in.Base != nil {
			return j.resolveAt(text, *in.Base)
		}
		return j.resolve(call, text)
	case urlForm:
		beside["host"] = types.String("")
		if j.Forms.URL != nil {
			if normal, host, ok := j.Forms.URL(text); ok {
				beside["host"] = types.String(host)
				return normal
			}
		}
	}
	return text
}

// subject is the process that a call acts as, in the form that rules see. It is computed when a rule reads it.
type subject struct {
	judge   *Judge
	call    *kernel.Call
	process *schema.Descriptor // nil: there is no process with the PID
}

func (s *subject) uid() types.EntityUID {
	if s.process == nil {
		return agentUID("")
	}
	return agentUID(s.process.AgentID)
}

func agentUID(name string) types.EntityUID { return types.NewEntityUID(agentType, types.String(name)) }

// Prefixes of the intent of a process that a key's login created, or that runs under a profile. Agents cannot forge them,
// since only the operator's children count.
const (
	keyIntent = "key:"
	// ProfileIntent precedes the name of the profile.
	ProfileIntent = "profile:"
)

// Get implements types.EntityGetter.
func (s *subject) Get(uid types.EntityUID) (types.Entity, bool) {
	if uid != s.uid() {
		return types.Entity{}, false
	}
	var above, groups []types.EntityUID
	attributes := types.RecordMap{"pid": types.Long(s.call.PID), "origin": types.String(s.call.Origin)}
	if p := s.process; p != nil {
		if key, ok := strings.CutPrefix(p.Intent, keyIntent); ok && p.ParentPID == kernel.Operator {
			attributes["key"] = types.String(key)
		}
		for p != nil && p.ParentPID != kernel.Operator {
			if p = s.judge.Processes.Process(p.ParentPID); p != nil {
				above = append(above, agentUID(p.AgentID))
			}
		}
		if p != nil {
			if name, ok := strings.CutPrefix(p.Intent, ProfileIntent); ok {
				groups = append(groups, types.NewEntityUID(profileType, types.String(name)))
			}
		}
	}
	list := make([]types.Value, len(above))
	for i, uid := range above {
		list[i] = uid
	}
	attributes["ancestors"] = types.NewSet(list...)
	return types.Entity{UID: uid, Parents: types.NewEntityUIDSet(append(groups, above...)...), Attributes: types.NewRecord(attributes)}, true
}
