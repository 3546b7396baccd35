package view

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// Lesson is the grant that a process and its descendants needed, according to the record.
type Lesson struct {
	calls   map[string]int            // number of calls that a grant allowed, by type
	tools   map[string]map[string]int // of the syscalls that are granted by names of tools: the calls by pattern, or by type where the name is unknown
	refused map[string]refused        // calls that were refused in spite of the grant, by type, or by the tool of a host
	granted map[string]bool           // patterns that they granted to others, and so must hold themselves
	quotas  map[string]float64        // resources that they granted to others
	http    Servers                   // servers that they granted to others
	fetches []Servers                 // servers that each request needed
	Holding []holding
	Policy  *policy.Learned // for rules of a policy
	Agents  int             // number of processes: the process and its descendants
}

// refused counts the refused calls of a type.
type refused struct {
	n   int
	why string // error of the first
}

// Servers are the servers that requests need.
type Servers struct {
	Hosts       []string
	Plain, Open bool
}

// holding is a change of the units of a resource that a process holds: to held, or by -less. The end of a process
// releases all resources.
type holding struct {
	Seq, pid   int64
	resource   string
	held, less float64
	end        bool
}

// NewLesson returns an empty lesson.
func NewLesson() *Lesson {
	return &Lesson{
		calls: map[string]int{}, tools: map[string]map[string]int{}, refused: map[string]refused{}, granted: map[string]bool{}, quotas: map[string]float64{}, Policy: policy.NewLearned(),
	}
}

// Note adds a call, and returns the PID of the process that it spawned, or 0.
func (l *Lesson) Note(e *schema.AuditEntry) (child int64) {
	if e.Type == "Net.Connect" {
		l.noteConnection(e)
		return 0
	}
	typ, tool := e.Type, ""
	switch {
	case schema.UserSpace(typ): // a tool of an MCP server
		typ, tool = schema.CallType, "Call:"+typ
	case typ == schema.CallType:
		tool = toolPattern(e.Request)
	case typ == schema.HostToolUse.Type:
		tool = cmp.Or(nameOf(&Entry{AuditEntry: *e}), typ)
	}
	row, ok := schema.Lookup(typ)
	if !ok && !schema.Registrable(e.Type) || ok && (row.Internal || row.Grant == schema.Everyone) {
		return 0
	}
	if Refusal(e.Code) || ok && row.Grant == schema.OperatorOnly {
		name := e.Type
		if typ == schema.HostToolUse.Type {
			name = tool
		}
		r := l.refused[name]
		if r.n++; r.n == 1 {
			r.why = string(e.Error)
		}
		l.refused[name] = r
		return 0
	}
	l.calls[typ]++
	l.notePolicy(e)
	switch typ {
	case "Http.Fetch":
		l.noteFetch(e)
	case schema.CallType, schema.HostToolUse.Type:
		if l.tools[typ] == nil {
			l.tools[typ] = map[string]int{}
		}
		l.tools[typ][tool]++
	}
	if !e.Success {
		return 0
	}
	switch e.Type {
	case "Syscall.Spawn":
		asked, _ := Members(e.Request)
		l.noteGrant(asked["capabilities"])
		out, _ := As[schema.SpawnOutput](e.Payload)
		return out.ChildPID
	case "Capability.Grant", "Capability.GrantDefault":
		l.noteGrant(e.Payload) // the token
	case "Syscall.Alloc":
		out, _ := As[schema.AllocOutput](e.Payload)
		l.Holding = append(l.Holding, holding{Seq: e.Seq, pid: e.PID, resource: out.ResourceID, held: out.Reserved.Float()})
	case "Syscall.Release":
		out, _ := As[schema.ReleaseOutput](e.Payload)
		l.Holding = append(l.Holding, holding{Seq: e.Seq, pid: e.PID, resource: out.ResourceID, less: out.Amount.Float()})
	}
	return 0
}

// toolPattern returns the pattern that a call of a user-space syscall needs: its path, or the pattern for all if the
// path depends on the caller's adopted identity.
func toolPattern(request schema.Value) string {
	members, _ := Members(request)
	name, _ := Text(members["syscall"])
	if path, ok := schema.ToolPath(name); ok {
		return "Call:" + path
	}
	return schema.CallType
}

// noteGrant records a grant to another process, which counts toward the grantor's usage.
func (l *Lesson) noteGrant(grant schema.Value) {
	members, _ := Members(grant)
	patterns, _ := As[[]string](members["allowed_syscalls"])
	quotas, _ := As[map[string]float64](members["resource_quotas"])
	http, servers := As[schema.HTTPGrant](members["http"])
	for _, pattern := range patterns {
		row, ok := Named(pattern)
		switch {
		case !ok:
			l.granted[pattern] = true
		case row.Grant != schema.Everyone:
			l.granted[row.Type] = true
		}
	}
	for resource, amount := range quotas {
		l.quotas[resource] = max(l.quotas[resource], amount)
	}
	if servers {
		l.http.Hosts = append(l.http.Hosts, http.Hosts...)
		l.http.Plain, l.http.Open = l.http.Plain || http.Plain, l.http.Open || http.Open
	}
}

// Named returns the syscall with a type or a code.
func Named(pattern string) (*schema.Syscall, bool) {
	if row, ok := schema.Lookup(pattern); ok {
		return row, true
	}
	rows := schema.Syscalls()
	i := slices.IndexFunc(rows, func(row *schema.Syscall) bool { return row.Code != "" && row.Code == pattern })
	if i < 0 {
		return nil, false
	}
	return rows[i], true
}

// noteFetch records the servers that a request needed: its target, and the targets of redirects.
func (l *Lesson) noteFetch(e *schema.AuditEntry) {
	members, _ := Members(e.Request)
	asked, _ := Text(members["url"])
	headers, _ := As[map[string]string](members["headers"])
	need := Servers{}
	for _, value := range headers {
		need.Open = need.Open || strings.HasPrefix(value, "pwenc:v1:")
	}
	answer, _ := Members(e.Payload)
	last, _ := Text(answer["url"])
	via, _ := As[[]string](answer["via"])
	method, ok := Text(members["method"])
	if !ok {
		method = "GET"
	}
	for i, address := range append([]string{asked, last}, via...) {
		need.visit(address)
		l.noteAddress(method, address)
		if i > 0 { // a redirect may change the method to GET
			l.noteAddress("GET", address)
		}
	}
	l.fetches = append(l.fetches, need)
}

// noteConnection records a connection through the kernel.
func (l *Lesson) noteConnection(e *schema.AuditEntry) {
	members, _ := Members(e.Request)
	host, _ := Text(members["host"])
	port, _ := As[int64](members["port"])
	if host == "" || Refusal(e.Code) {
		return
	}
	if local, _ := As[bool](members["local"]); local {
		l.granted[schema.Localhost(uint16(port))] = true
		return
	}
	if port != 0 && port != 80 && port != 443 {
		host += ":" + Units(float64(port))
	}
	l.http.Hosts = append(l.http.Hosts, host)
}

// visit adds the server of an address.
func (n *Servers) visit(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]; port != "" && port != usual {
		host += ":" + port
	}
	n.Hosts = append(n.Hosts, host)
	n.Plain = n.Plain || u.Scheme == "http"
}

// NoteExit records that processes have ended, which releases all their resources.
func (l *Lesson) NoteExit(e *schema.AuditEntry) {
	in, _ := As[schema.ProcessExitInput](e.Request)
	for _, pid := range in.PIDs {
		l.Holding = append(l.Holding, holding{Seq: e.Seq, pid: pid, end: true})
	}
}

// Peaks returns the needed quotas: the maximum in use at once, and at least the maximum granted.
func (l *Lesson) Peaks() map[string]float64 {
	peaks := maps.Clone(l.quotas)
	slices.SortStableFunc(l.Holding, func(a, b holding) int { return int(a.Seq - b.Seq) })
	held := make(map[string]map[int64]float64) // by resource and process
	for _, h := range l.Holding {
		if h.end {
			for _, each := range held {
				delete(each, h.pid)
			}
			continue
		}
		each := held[h.resource]
		if each == nil {
			each = make(map[int64]float64)
			held[h.resource] = each
		}
		if h.less > 0 {
			each[h.pid] -= h.less
			continue
		}
		each[h.pid] = h.held
		total := 0.0
		for _, amount := range each {
			total += amount
		}
		peaks[h.resource] = max(peaks[h.resource], total)
	}
	return peaks
}

// Allow returns the smallest grant: the called types, and those that were granted to others. A grant must name at least
// one type, so it is Syscall.Ping if there is none.
func (l *Lesson) Allow() []string {
	patterns := slices.Collect(maps.Keys(l.granted))
	for typ := range l.calls {
		row, ok := schema.Lookup(typ)
		switch {
		case ok && allows(patterns, row) || !ok && slices.Contains(patterns, typ):
		case l.tools[typ] == nil || l.tools[typ][typ] > 0:
			patterns = append(patterns, typ)
		default:
			for pattern := range l.tools[typ] {
				if !allowsTool(patterns, pattern) {
					patterns = append(patterns, pattern)
				}
			}
		}
	}
	if len(patterns) == 0 {
		return []string{"Syscall.Ping"}
	}
	slices.Sort(patterns)
	return patterns
}

// Servers returns the smallest grant of servers.
func (l *Lesson) Servers() Servers {
	all := Servers{Hosts: slices.Clone(l.http.Hosts), Plain: l.http.Plain, Open: l.http.Open}
	for _, need := range l.fetches {
		all.Hosts = append(all.Hosts, need.Hosts...)
		all.Plain, all.Open = all.Plain || need.Plain, all.Open || need.Open
	}
	slices.Sort(all.Hosts)
	all.Hosts = slices.Compact(all.Hosts)
	return all
}

// Denied returns the number of calls that a grant refuses, by type.
func (l *Lesson) Denied(allow []string, http *schema.HTTPGrant) map[string]int {
	denied := make(map[string]int)
	for typ, n := range l.calls {
		switch row, ok := schema.Lookup(typ); {
		case ok && allows(allow, row) || !ok && slices.Contains(allow, typ):
		case l.tools[typ] != nil:
			for pattern, n := range l.tools[typ] {
				if !allowsTool(allow, pattern) {
					denied[pattern] += n
				}
			}
		default:
			denied[typ] = n
		}
	}
	if denied["Http.Fetch"] == 0 {
		for _, need := range l.fetches {
			if !need.within(http) {
				denied["Http.Fetch"]++
			}
		}
	}
	return denied
}

// within reports whether a grant covers a request's needs.
func (n *Servers) within(grant *schema.HTTPGrant) bool {
	if grant == nil || n.Plain && !grant.Plain || n.Open && !grant.Open {
		return false
	}
	return !slices.ContainsFunc(n.Hosts, func(host string) bool {
		return !slices.ContainsFunc(grant.Hosts, func(pattern string) bool { return serves(strings.ToLower(pattern), host) })
	})
}

// serves reports whether a pattern of a grant matches a server. Both may have a port, and that of the pattern may be *.
func serves(pattern, host string) bool {
	pattern, port := cutPort(pattern)
	name, wanted := cutPort(host)
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	isName := err != nil
	return (port == "*" || port == wanted) &&
		(pattern == name || isName && (pattern == "*" || strings.HasPrefix(pattern, "*.") && strings.HasSuffix(name, pattern[1:])))
}

func cutPort(host string) (name, port string) {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i], host[i+1:]
	}
	return host, ""
}

// allows reports whether one of the patterns of a grant matches the syscall (PROTOCOL 5).
func allows(patterns []string, row *schema.Syscall) bool {
	domain, _, _ := strings.Cut(row.Type, ".")
	return slices.ContainsFunc(patterns, func(p string) bool {
		return p == row.Type || row.Code != "" && p == row.Code || row.Grant != schema.ByName && (p == "*" || p == domain+".*")
	})
}

// allowsTool reports whether one of the patterns of a grant matches a tool, a pattern such as Call:mcp/fs/read without *.
func allowsTool(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		tree, below := strings.CutSuffix(p, "*")
		return p == tool || below && strings.Contains(p, ":") && strings.HasPrefix(tool, tree)
	})
}

// Report describes the calls for people, and those that a grant, named what, would have denied.
func (l *Lesson) Report(what string, denied map[string]int) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if len(l.calls) == 0 {
		say("%s made no calls that need a grant", agentsText(l.Agents))
	} else {
		say("%s made calls that need a grant, %s", agentsText(l.Agents), times(sum(l.calls)))
	}
	for _, typ := range slices.Sorted(maps.Keys(denied)) {
		say("  %s would have denied %s, %s", what, typ, times(denied[typ]))
	}
	for _, typ := range slices.Sorted(maps.Keys(l.refused)) {
		say("  %s was refused in spite of a grant of everything, %s: %s", typ, times(l.refused[typ].n), Escaped(l.refused[typ].why))
	}
	if len(denied) == 0 {
		say("  %s would have denied nothing", what)
	}
	if len(l.calls) == 0 {
		say("to run it without a grant:")
	} else {
		say("to run it with the smallest grant:")
	}
	return lines
}

// JSON returns the lesson as JSON, with a command line that has the grant.
func (l *Lesson) JSON(line string, denied map[string]int) []byte {
	return Object(nil).
		Text("line", line).
		Raw("allow", Texts(l.Allow())).
		Raw("quotas", Numbers(l.Peaks())).
		Raw("hosts", Texts(l.Servers().Hosts)).
		Raw("would_be_denied", Counts(denied)).
		Raw("refused", Counts(l.Refusals())).
		Integer("agents", int64(l.Agents)).Close()
}

// Refusals counts the calls that were refused, by type.
func (l *Lesson) Refusals() map[string]int {
	n := make(map[string]int, len(l.refused))
	for typ, r := range l.refused {
		n[typ] = r.n
	}
	return n
}

// CommandLine returns a command that runs the program args with the smallest grant and the flags kept.
func (l *Lesson) CommandLine(kept, args []string) string {
	quotas, servers := l.Peaks(), l.Servers()
	words := []string{"pwos", "run", "--allow", quote.List(l.Allow())}
	for _, resource := range slices.Sorted(maps.Keys(quotas)) {
		words = append(words, "--quota", resource+"="+Units(quotas[resource]))
	}
	for _, host := range servers.Hosts {
		words = append(words, "--host", host)
	}
	if servers.Plain {
		words = append(words, "--http-plain")
	}
	if servers.Open {
		words = append(words, "--http-open")
	}
	words = append(append(words, kept...), "--")
	return quote.Line(append(words, args...)...)
}

func agentsText(n int) string {
	if n == 1 {
		return "the agent"
	}
	if n == 2 {
		return "the agent and its descendant"
	}
	return fmt.Sprintf("the agent and its %d descendants", n-1)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

func sum(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// notePolicy adds a call to Policy.
func (l *Lesson) notePolicy(e *schema.AuditEntry) {
	members, _ := Members(e.Request)
	switch e.Type {
	case schema.MemoryGet.Type, schema.MemorySet.Type, schema.MemoryCompareAndSet.Type, schema.MemoryDelete.Type:
		if key, ok := Text(members["key"]); ok {
			l.Policy.Key(e.Type, key)
		}
	case schema.MemoryList.Type:
		prefix, _ := Text(members["prefix"])
		l.Policy.List(prefix)
	}
}

// noteAddress adds an address that was fetched, or the target of a redirect.
func (l *Lesson) noteAddress(method, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return
	}
	l.Policy.Fetches[policy.Fetched{Method: method, Host: strings.ToLower(u.Hostname())}] = true
}
