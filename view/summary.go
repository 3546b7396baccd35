package view

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Names are the names of agents by PID.
type Names map[int64]string

// Of returns the escaped name of a process: "operator" for the operator, the PID if the name is not known.
func (n Names) Of(pid int64) string {
	switch name := n[pid]; {
	case name != "":
		return shortened(Escaped(name), maxName)
	case pid == 0:
		return "operator"
	}
	return "pid " + strconv.FormatInt(pid, 10)
}

// At returns the name of a process of another kernel, such as 12@beta.
func At(pid int64, kernel string) string {
	name := strconv.FormatInt(pid, 10)
	if pid == 0 {
		name = "operator"
	}
	return name + "@" + Escaped(kernel)
}

// at returns the name of the process pid of kernel; of this kernel if kernel is absent, and "" if pid is.
func (n Names) at(pid, kernel schema.Value) string {
	id, ok := As[int64](pid)
	if !ok {
		return ""
	}
	if name, abroad := Text(kernel); abroad {
		return At(id, name)
	}
	return n.Of(id)
}

// Learn adds the names of processes that an entry has spawned.
func (n Names) Learn(e *schema.AuditEntry) {
	if !e.Success {
		return
	}
	switch e.Type {
	case schema.SyscallSpawn.Type:
		if out, ok := As[schema.SpawnOutput](e.Payload); ok && out.Kernel == "" {
			n[out.ChildPID] = out.ChildAgentID
		}
	case schema.ProcessAttach.Type:
		if out, ok := As[schema.AttachOutput](e.Payload); ok {
			n[out.PID] = out.AgentID
		}
	}
}

// summary describes a call in a line: templates for its data and for its answer.
//
// {name} is a member of the data, {=name} a member of the answer, {=} the whole answer. {name?text} is text if the
// member is absent. {name|format} is formatted, see formats. A part in brackets is left out if one of its members is
// absent.
type summary struct {
	object string
	result string
}

// summaries has the syscalls with a summary. A call of another type is described by the short members of its data.
var summaries = map[string]summary{
	"Approval.Decide":          {"{decision} {id}[ for {for_seconds} s][: {why}]", "{=type} of {=agent}"},
	"Approval.List":            {"[{state}]", ""},
	"Approval.Requested":       {"{type} of {agent}, by rule {rule}", ""},
	"Approval.Use":             {"{id}", ""},
	"Audit.Archive":            {"entries[ before {before_seq}] to {directory}", "{=segments} segments"},
	"Audit.Redact":             {"{member} of entry {seq}", "[by entry {=by}]"},
	"Audit.Redacted":           {"{member} of entry {seq}", ""},
	"Audit.Subscribe":          {"[{types|list}][ of {pid|pid}][ from {since_seq}]", ""},
	"Capability.Check":         {"{syscall}[ of {pid|pid}]", ""},
	"Capability.Endow":         {"{pid|pid}: {allowed_syscalls|list}", ""},
	"Capability.Get":           {"[{pid|pid}]", ""},
	"Capability.Grant":         {"{pid|pid}, {mode?replace}: {allowed_syscalls|list}[, hosts {http.hosts|list}][, quotas {resource_quotas|pairs}]", "[{=warning}]"},
	"Capability.GrantDefault":  {"{pid|pid}[, 200 of each of {resources|list}]", "[{=warning}]"},
	"Capability.Revoke":        {"{pid|pid}", "[{=revoked|had}]"},
	"Capability.RevokeExpired": {"", "{=revoked|pids}"},
	"Capability.Strip":         {"{pids|pids}", ""},
	"Clock.Advance":            {"{ticks}", "tick {=tick}"},
	"Crypto.Derive":            {"[{kid}]", ""},
	"Crypto.Open":              {"[for {aad}]", ""},
	"Crypto.Seal":              {"[for {aad}]", "by {=kid}"},
	"Delta.Drop":               {"{agent_id}, after tick {to_tick}", ""},
	"FileSystem.Hydrate":       {"[{uri}]", "{=skills|count} skills, {=tools|count} tools"},
	"FileSystem.Resolve":       {"{uri}[ beside {base}]", ""},
	"Host.ToolUse":             {"{host}/{tool} {input}", "{=decision}[: {=reason}]"},
	"Http.Fetch":               {"{method?GET} {url}", "{=status}, {=size|bytes}"},
	"Cluster.Ask":              {"{kernel}: {type}", ""},
	"Cluster.Queue":            {"", ""},
	"Cluster.Drop":             {"message {msg_id}", "to {=receiver_pid}@{=kernel}"},
	"Cluster.Refused":          {"{kernel}: {reason}[, and {more} others]", ""},
	"Ipc.Accept":               {"from {|sender} to {receiver_pid|pid}[, {intent}][ ({payload|size})]", "[message {=msg_id} ]{=status}[: {=reason}]"},
	"Ipc.Taken":                {"message {msg_id} of {kernel} to {receiver_pid|pid}", "{=taken}"},
	"Ipc.Settle":               {"message {msg_id} to {receiver_pid}@{kernel}: {status}[: {reason}]", ""},
	"Ipc.Ack":                  {"{msg_ids|list}", ""},
	"Ipc.Address":              {"{pids|pids}", ""},
	"Ipc.Broadcast":            {"[{intent} ][({payload|size})]", "{=delivered|count} delivered[, mailbox full: {=mailbox_full|pids}]"},
	"Ipc.Close":                {"{pids|pids}", ""},
	"Ipc.Deliver":              {"", "{=messages|mail}"},
	"Ipc.Open":                 {"{pids|pids}", ""},
	"Ipc.Receive":              {"[{intent}]", "{=messages|mail}"},
	"Ipc.Return":               {"{pids|pids}", ""},
	"Job.Begin":                {"{job_id}", ""},
	"Job.Cancel":               {"{jobId}", "[{=canceled|had}]"},
	"Job.End":                  {"{job_id}, run {run}", ""},
	"Job.Start":                {"{name}[ every {every|ms}][ at {at|time}]", "job {=jobId}"},
	"Job.Status":               {"{jobId}", ""},
	"Kernel.Booted":            {"instance {instance}, epoch {epoch}", ""},
	"Kernel.TakeOver":          {"epoch {epoch}", ""},
	"Kernel.Ingest":            {"{uri}", "{=digest}, proof {=proof}"},
	"Kernel.LoginFailed":       {"{reason}[, key {fingerprint}][, user {uid}][, from {address}][, {count} times]", ""},
	"Kernel.Throttled":         {"{pid|pid}, {count} calls", ""},
	"Memory.CompareAndSet":     {"{key}[ ({value|size})][ ({valueRef|ref})]", ""},
	"Memory.Delete":            {"{key}", ""},
	"Memory.Get":               {"{key}", ""},
	"Memory.List":              {"[{prefix}]", ""},
	"Memory.Set":               {"{key}[ ({value|size})][ ({valueRef|ref})]", ""},
	"Net.Connect":              {"{host}[:{port}][ by {program}][ in {step}]", "[{=sent|bytes} sent, {=received|bytes} received][, {=ended}]"},
	"Net.Publish":              {"{inside} as localhost:{port}", "[{=connections|count} connections, {=sent|bytes} sent, {=received|bytes} received][, {=ended}]"},
	"Net.Request":              {"{upstream} {method} {path}[ by {program}][ in {step}]", "{=status}, {=received|bytes}[, {=usage.input_tokens} + {=usage.output_tokens} tokens]"},
	"Policy.Loaded":            {"{files|list}", ""},
	"Policy.Reload":            {"", "{=rules} rules"},
	"Process.Attach":           {"{agent_id}", "pid {=pid}"},
	"Process.Settle":           {"call {number} for {kernel}", ""},
	"Process.Exit":             {"{pids|pids}: {reason}", ""},
	"Process.Get":              {"{pid|pid}", ""},
	"Process.List":             {"[{state}]", ""},
	"Process.NoteEnd":          {"{pid|pid}: {reason}[, code {code}][, signal {signal}]", ""},
	"Process.NoteStart":        {"{pid|pid}, sandbox {sandbox}", ""},
	"Process.Pause":            {"[{target_pid|pid}][{all|all}]", "{=processes} paused"},
	"Process.Prepare":          {"{pid|pid}", ""},
	"Process.RestoreFiles":     {"{pid|pid}: {dir} from {snapshot}, {made} made, {changed} changed, {removed} removed", "[kept as {replaced}]"},
	"Process.Resume":           {"[{target_pid|pid}][{all|all}]", "{=processes} resumed"},
	"Process.Subscribe":        {"[{pid|pid}]", ""},
	"Program.Exec":             {"{argv|list} in {cwd}", ""},
	"Resource.Free":            {"{pids|pids}", ""},
	"Syscall.Alloc":            {"{amount} of {resource_id}", "holds {=reserved}"},
	"Syscall.Call":             {"{syscall}[ {args|list}]", "{=|size}"},
	"Syscall.Checkpoint":       {"[{agent_id}]", "checkpoint {=checkpoint_id}, {=total_deltas} deltas"},
	"Syscall.CommitDelta":      {"[{agent_id} ][{action_type}][ ({changes|size})]", "delta {=delta_seq} of {=agent_id}"},
	"Syscall.Complete":         {"{call_id}[: {error.message}]", ""},
	"Syscall.Describe":         {"{name}", ""},
	"Syscall.Echo":             {"{message}", ""},
	"Syscall.GetState":         {"[{target_pid|pid}][ at tick {at_tick}]", ""},
	"Syscall.List":             {"", ""},
	"Syscall.Ping":             {"[({payload|size})]", ""},
	"Syscall.Query":            {"{resource_id}", ""},
	"Syscall.Register":         {"{name}[ ({kind})][ ({type})][, provided by {path}]", ""},
	"Syscall.Release":          {"{amount} of {resource_id}", ""},
	"Syscall.Rollback":         {"[{agent_id} ]to tick {to_tick}", "{=dropped} deltas dropped"},
	"Syscall.SendMsg":          {"to {|receiver}[, {intent}][ ({payload|size})]", "message {=msg_id} {=status}[: {=reason}]"},
	"Syscall.Shutdown":         {"", ""},
	"Syscall.Spawn":            {"{child_agent_id}[ at {kernel}][: {command|shell}]", "pid {=child_pid}[ of {=kernel}]"},
	"Syscall.Terminate":        {"{|target}[: {reason}]", ""},
	"Syscall.Unregister":       {"{name}", ""},
}

// object describes the object of the call; "" if its data is not available.
func (e *Entry) object(names Names) string {
	if len(e.Request) == 0 {
		return ""
	}
	data := e.Request
	if _, ok := schema.Lookup(e.Type); !ok { // a registered syscall: the request has its data inside
		members, _ := Members(data)
		data = members["data"]
	}
	if d, ok := summaries[e.Type]; ok {
		f := filling{request: data, names: names}
		return strings.TrimSpace(f.fill(d.object))
	}
	return briefly(data)
}

// result describes the answer of a successful call.
func (e *Entry) result(names Names) string {
	if !e.Success || len(e.Payload) == 0 {
		return ""
	}
	if d, ok := summaries[e.Type]; ok {
		f := filling{payload: e.Payload, names: names}
		return strings.TrimSpace(f.fill(d.result))
	}
	if string(e.Payload) == `{"success":true}` {
		return ""
	}
	return sizeText(e.Payload)
}

// briefly formats the members of an object, except objects and arrays.
func briefly(data schema.Value) string {
	var parts []string
	eachMember(data, func(name string, value schema.Value) {
		if len(value) > 0 && value[0] != '{' && value[0] != '[' && string(value) != "null" {
			parts = append(parts, Escaped(name)+"="+shortened(Shown(value), maxShown))
		}
	})
	return shortened(strings.Join(parts, " "), 2*maxShown)
}

// maxShown bounds the length of a value in a line, in characters.
const maxShown = 80

// filling is the state of filling a template.
type filling struct {
	request, payload schema.Value
	names            Names
	missing          bool // whether a member of the part is absent
}

// fill returns a template with its members filled in; "" if a member outside of brackets is absent.
func (f *filling) fill(template string) string {
	var b strings.Builder
	for template != "" {
		at := strings.IndexAny(template, "[{")
		if at < 0 {
			b.WriteString(template)
			break
		}
		b.WriteString(template[:at])
		template = template[at:]
		end := strings.IndexByte(template, closing[template[0]])
		part := template[1:end]
		if template[0] == '{' {
			b.WriteString(f.member(part))
		} else {
			inside := filling{request: f.request, payload: f.payload, names: f.names}
			if text := inside.fill(part); !inside.missing {
				b.WriteString(text)
			}
		}
		template = template[end+1:]
	}
	if f.missing {
		return ""
	}
	return b.String()
}

// closing has the closing bracket of each part of a template.
var closing = map[byte]byte{'[': ']', '{': '}'}

// member returns the text of a member. part is its path, with an optional default or format.
func (f *filling) member(part string) string {
	part, format, _ := strings.Cut(part, "|")
	path, otherwise, _ := strings.Cut(part, "?")
	from := f.request
	if rest, ok := strings.CutPrefix(path, "="); ok {
		path, from = rest, f.payload
	}
	value := from
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		members, _ := Members(value)
		value = members[name]
	}
	text := ""
	if len(value) > 0 && string(value) != "null" {
		text = formats[format](f.names, value)
	}
	if text = cmp.Or(text, otherwise); text == "" {
		f.missing = true
	}
	return text
}

// formats has the formats of members; the result "" means that the member counts as absent.
var formats = map[string]func(names Names, value schema.Value) string{
	"":      func(_ Names, v schema.Value) string { return shortened(Shown(v), maxShown) },
	"size":  func(_ Names, v schema.Value) string { return sizeText(v) },
	"ref":   func(Names, schema.Value) string { return "by reference" },
	"shell": func(_ Names, v schema.Value) string { words, _ := As[[]string](v); return CommandText(words) },
	"bytes": func(_ Names, v schema.Value) string { n, _ := As[int64](v); return Bytes(n) },
	"ms":    func(_ Names, v schema.Value) string { n, _ := As[int64](v); return milliseconds(n) },
	"time":  func(_ Names, v schema.Value) string { n, _ := As[int64](v); return Moment(n) },
	"pid":   func(names Names, v schema.Value) string { n, _ := As[int64](v); return names.Of(n) },
	"receiver": func(names Names, v schema.Value) string {
		m, _ := Members(v)
		return names.at(m["receiver_pid"], m["receiver_kernel"])
	},
	"sender": func(names Names, v schema.Value) string {
		m, _ := Members(v)
		return names.at(m["sender_pid"], m["kernel"])
	},
	"target": func(names Names, v schema.Value) string {
		m, _ := Members(v)
		return names.at(m["target_pid"], m["kernel"])
	},
	"had":  func(_ Names, v schema.Value) string { return word(v, "", "there was none") },
	"all":  func(_ Names, v schema.Value) string { return word(v, "all agents", "") },
	"list": func(_ Names, v schema.Value) string { return listText(v, Shown) },
	"pids": func(names Names, v schema.Value) string {
		return listText(v, func(one schema.Value) string { n, _ := As[int64](one); return names.Of(n) })
	},
	"pairs": func(_ Names, v schema.Value) string {
		var pairs []string
		eachMember(v, func(name string, value schema.Value) { pairs = append(pairs, Escaped(name)+"="+Shown(value)) })
		return shortened(strings.Join(pairs, ", "), maxShown)
	},
	"count": func(_ Names, v schema.Value) string {
		list, _ := Elements(v)
		return strconv.Itoa(len(list))
	},
	"mail": mailText,
}

// word returns yes for true, no for false, and "" for other values.
func word(v schema.Value, yes, no string) string {
	if string(v) == "true" {
		return yes
	}
	return no
}

// listText joins the elements of an array.
func listText(v schema.Value, show func(schema.Value) string) string {
	list, _ := Elements(v)
	texts := make([]string, 0, len(list))
	for _, one := range list {
		texts = append(texts, show(one))
	}
	return shortened(strings.Join(texts, ", "), maxShown)
}

// mailText describes received messages.
func mailText(names Names, v schema.Value) string {
	list, ok := As[[]schema.MailMessage](v)
	if !ok || len(list) == 0 {
		return "nothing"
	}
	m := &list[0]
	from := names.Of(m.SenderPID)
	if m.SenderKernel != "" {
		from = At(m.SenderPID, m.SenderKernel)
	}
	text := "message " + strconv.FormatInt(m.MsgID, 10) + " from " + from
	if m.Redelivered {
		text += ", again"
	}
	text += " (" + sizeText(m.Payload) + ")"
	if n := len(list) - 1; n > 0 {
		text += " and " + strconv.Itoa(n) + " more"
	}
	return text
}

// eachMember calls do with the members of an object, in order.
func eachMember(object schema.Value, do func(name string, value schema.Value)) {
	if len(object) > 0 && object[0] == '{' {
		jsontype.Members(object, func(name, value []byte) bool {
			do(string(name), value)
			return true
		})
	}
}

// redacted is the journal's placeholder for a value that it must not store.
const redacted = `"[redacted]"`

// sizeText formats the size of a value. For a string it is the size of the content.
func sizeText(v schema.Value) string {
	if string(v) == redacted {
		return "withheld"
	}
	if text, ok := Text(v); ok {
		return Bytes(int64(len(text)))
	}
	return Bytes(int64(len(v)))
}

// Bytes formats an amount of data for people.
func Bytes(n int64) string {
	size, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB"} {
		if size < 1000 {
			break
		}
		size, unit = size/1000, next
	}
	if unit == "B" {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + unit
}

// Moment formats a time in Unix milliseconds for people, in the local time zone.
func Moment(ms int64) string { return time.UnixMilli(ms).Format("2006-01-02 15:04:05.000") }

func milliseconds(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
