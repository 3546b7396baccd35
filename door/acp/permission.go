package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Use is what a host asks permission for.
type Use struct {
	Session, ID string
	Tool        string // as the host names it; "": it does not
	Kind        string // read, edit, execute and so on; other: the host does not say
	Input       schema.Value
}

// using is a use that was allowed, until the host says that it has ended.
type using struct{ session, id string }

// decision is a permission that the kernel decides, or the editor's user.
type decision struct {
	session string
	cancel  context.CancelFunc
}

// option is one of the answers to a request for permission.
type option struct{ id, kind string }

// permission lets the kernel decide what the host asks permission for.
func (d *Door) permission(ctx context.Context, m *message) {
	params := objectOf(m.params)
	call := objectOf(params["toolCall"])
	var options []option
	for _, one := range elements(params["options"]) {
		o := objectOf(one)
		options = append(options, option{o.text("optionId"), o.text("kind")})
	}
	use, bad := useOf(params.text("sessionId"), call)
	ctx, cancel := context.WithCancel(ctx)
	d.mu.Lock()
	switch {
	case bad != nil:
	case use.Session == "" || call.text("toolCallId") == "" || len(options) == 0:
		bad = &failure{invalidParams, "a request for permission has a sessionId, a toolCall with a toolCallId, and options"}
	case d.deciding[m.id] != nil:
		bad = &failure{invalidRequest, "the id is that of a request in flight"}
	case len(d.deciding) >= mostPermissions:
		bad = &failure{tooMany, fmt.Sprintf("%d requests for permission are in flight, which is the limit", mostPermissions)}
	default:
		d.deciding[m.id] = &decision{use.Session, cancel}
	}
	d.mu.Unlock()
	if bad != nil {
		cancel()
		d.host.send(bad.answer(m.id))
		return
	}
	d.workers.Go(func() {
		defer cancel()
		result := d.decide(ctx, m, use, call, options)
		d.mu.Lock()
		delete(d.deciding, m.id)
		d.mu.Unlock()
		d.host.send((&message{id: m.id, result: result}).line())
	})
}

// cancelled is the outcome of a request for permission whose turn has ended.
const cancelled = `{"outcome":{"outcome":"cancelled"}}`

// decide returns the outcome of a request for permission. If the kernel allows what it is about, it is allowed once; an answer that
// concerns the session and no tool, such as a plan's, is the editor's user's.
func (d *Door) decide(ctx context.Context, m *message, use *Use, call object, options []option) schema.Value {
	allowed, why := d.options.Decide(ctx, use)
	if allowed && d.options.Ended != nil {
		d.mu.Lock()
		if len(d.using) < mostRequests { // the steps of others end with the agent
			d.using[using{use.Session, use.ID}] = use
		}
		d.mu.Unlock()
	}
	switch {
	case ctx.Err() != nil:
		return schema.Value(cancelled)
	case !allowed:
		d.editor.send(update(use.Session, object{
			"sessionUpdate": schema.Value(`"tool_call"`), "toolCallId": call["toolCallId"], "status": schema.Value(`"failed"`),
			"title": titleOf(call), "content": texts("pwos: " + why),
		}))
		return selected(options, why, "reject_once", "reject_always")
	case use.Kind != "switch_mode" && has(options, "allow_once"):
		return selected(options, "", "allow_once")
	}
	answer, err := d.put(ctx, m.params)
	if err != nil {
		return schema.Value(cancelled)
	}
	chosen := objectOf(objectOf(answer)["outcome"]).text("optionId")
	for _, o := range options {
		if o.id == chosen && chosen != "" {
			return outcome(o.id, "")
		}
	}
	return schema.Value(cancelled)
}

// updated notices the end of a use that was allowed, before the editor hears of it.
func (d *Door) updated(params object) {
	if d.options.Ended == nil {
		return
	}
	of := objectOf(params["update"])
	switch status := of.text("status"); status {
	case "completed", "failed":
		d.endUse(using{params.text("sessionId"), of.text("toolCallId")}, status == "failed")
	}
}

func (d *Door) endUse(which using, failed bool) {
	d.mu.Lock()
	use := d.using[which]
	delete(d.using, which)
	d.mu.Unlock()
	if use != nil {
		d.options.Ended(use, failed)
	}
}

// useOf returns what a tool call uses, or why that is not known.
func useOf(session string, call object) (*Use, *failure) {
	use := &Use{Session: session, ID: call.text("toolCallId"), Kind: call.text("kind"), Input: call["rawInput"]}
	for _, more := range objectOf(call["_meta"]) { // adapters name the tool there, each below its own name
		name := objectOf(more).text("toolName")
		if name != "" && use.Tool != "" && name != use.Tool {
			return use, &failure{invalidParams, "a tool call names one tool, and not two"}
		}
		use.Tool = cmp.Or(use.Tool, name)
	}
	if use.Kind == "" {
		use.Kind = "other"
	}
	if use.Input == nil { // what the host shows of it is all that is known
		shown := make(object)
		for _, name := range []string{"title", "content", "locations"} {
			if call[name] != nil {
				shown[name] = call[name]
			}
		}
		if use.Kind == "execute" {
			shown["command"] = titleOf(call)
		}
		use.Input = shown.with("title", titleOf(call)).json()
	}
	return use, nil
}

// titleOf returns the title of a tool call, as JSON.
func titleOf(call object) schema.Value {
	title := call.text("title")
	if title == "" {
		title = "a tool"
	}
	return quoted(title)
}

func has(options []option, kind string) bool {
	for _, o := range options {
		if o.kind == kind {
			return true
		}
	}
	return false
}

// selected returns the outcome that is the first option of these kinds; without one, the turn is cancelled.
func selected(options []option, why string, kinds ...string) schema.Value {
	for _, kind := range kinds {
		for _, o := range options {
			if o.kind == kind {
				return outcome(o.id, why)
			}
		}
	}
	return schema.Value(cancelled)
}

// outcome returns the result of a request for permission. The protocol has no place for a reason: it is in _meta.
func outcome(option, why string) schema.Value {
	out := schema.AppendString([]byte(`{"outcome":{"outcome":"selected","optionId":`), option)
	out = append(out, '}')
	if why != "" {
		out = append(schema.AppendString(append(out, `,"_meta":{"pwos":{"reason":`...), why), "}}"...)
	}
	return append(out, '}')
}

// cancel ends the decisions of a session whose turn the editor cancels.
func (d *Door) cancel(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.deciding {
		if one.session == session {
			one.cancel()
		}
	}
}

// Question is one that the editor's user is asked. It is of the agent and of none of its sessions, which the kernel does not know.
type Question struct{ Title, Detail string }

// Answer is that of the editor's user.
type Answer int

// The answers. None is no answer, and decides nothing.
const (
	None Answer = iota
	Once
	Hour
	Refuse
)

// literally returns Markdown that shows a text as it is: editors render what they show, which could hide a part of it.
func literally(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// errNowhere is the error of a question before there is a session.
var errNowhere = errors.New("the editor has no session yet")

// Ask asks the editor's user, in the session of the last prompt, until ctx ends. The host learns nothing of it, and can neither answer nor change what is shown.
func (d *Door) Ask(ctx context.Context, q *Question) (Answer, error) {
	d.mu.Lock()
	session := d.current
	d.mu.Unlock()
	if session == "" {
		return None, errNowhere
	}
	call := object{
		"toolCallId": quoted("pwos-" + rand.Text()), "title": quoted("`" + strings.ReplaceAll(q.Title, "`", "'") + "`"), "kind": schema.Value(`"other"`),
		"content": texts(literally(q.Detail)),
	}
	answer, err := d.put(ctx, object{
		"sessionId": quoted(session), "toolCall": call.with("status", schema.Value(`"pending"`)).json(),
		"options": schema.Value(`[{"optionId":"once","name":"Allow once","kind":"allow_once"},` +
			`{"optionId":"hour","name":"Allow for an hour","kind":"allow_always"},{"optionId":"refuse","name":"Refuse","kind":"reject_once"}]`),
	}.json())
	end := map[string]Answer{"once": Once, "hour": Hour, "refuse": Refuse}[objectOf(objectOf(answer)["outcome"]).text("optionId")]
	call["sessionUpdate"], call["status"] = schema.Value(`"tool_call"`), schema.Value(`"failed"`)
	if end == Once || end == Hour {
		call["status"] = schema.Value(`"completed"`)
	}
	d.editor.send(update(session, call))
	return end, err
}

// put asks the editor for permission, until ctx ends, and returns its result.
func (d *Door) put(ctx context.Context, params schema.Value) (schema.Value, error) {
	m := &message{id: string(quoted("pwos-" + rand.Text())), method: "session/request_permission", params: params}
	answers := make(chan *message, 1)
	d.mu.Lock()
	d.asking[m.id] = answers
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.asking, m.id)
	}()
	d.editor.send(m.line())
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case answer := <-answers:
		if answer.failure != nil {
			return nil, errors.New("the editor refused to ask: " + objectOf(answer.failure).text("message"))
		}
		return answer.result, nil
	}
}

// answered handles a response of the editor. One to a question that has ended decides nothing.
func (d *Door) answered(m *message) {
	d.mu.Lock()
	asked := d.asking[m.id]
	delete(d.asking, m.id)
	d.mu.Unlock()
	if asked != nil {
		asked <- m
	}
}

// update returns a line with an update of a session.
func update(session string, of object) []byte {
	return (&message{method: "session/update", params: object{"sessionId": quoted(session), "update": of.json()}.json()}).line()
}

// texts returns the content of a tool call that is a text.
func texts(text string) schema.Value {
	return append(schema.AppendString([]byte(`[{"type":"content","content":{"type":"text","text":`), text), "}}]"...)
}

// elements returns the elements of an array; none if it is none.
func elements(raw schema.Value) (all []schema.Value) {
	if raw != nil {
		jsontype.Elements(raw, func(value []byte) bool {
			all = append(all, value)
			return true
		})
	}
	return all
}
