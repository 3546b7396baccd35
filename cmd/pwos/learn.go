package main

import (
	"context"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
)

// lesson is what the record tells of what a process and its descendants needed.
type lesson struct {
	calls   map[string]int     // calls that a grant let through, by type, whatever came of them
	tools   map[string]int     // those of user space among the calls, by pattern
	refused map[string]refused // calls that were refused all the same, by type
	handed  map[string]bool    // what they granted to others, which they have to hold themselves: patterns
	quotas  map[string]float64 // the same of resources
	http    httpNeed           // the same of servers
	fetches []httpNeed         // what each request needed
	holding []holding
	policy  *policy.Learned // what rules can tell of the calls
	agents  int             // the first one and all that were spawned
}

// refused are calls of one type that were refused.
type refused struct {
	n   int
	why string // of the first
}

// httpNeed is what requests to servers need.
type httpNeed struct {
	hosts       []string
	plain, open bool
}

// holding is a change of what a process holds of a resource: to held, or by less. An end is of all resources.
type holding struct {
	seq, pid   int64
	resource   string
	held, less float64
	end        bool
}

func newLesson() *lesson {
	return &lesson{
		calls: map[string]int{}, tools: map[string]int{}, refused: map[string]refused{}, handed: map[string]bool{}, quotas: map[string]float64{}, policy: policy.NewLearned(),
	}
}

// learnFrom reads the calls of a process and of all that it spawned. A process can grant no more than it holds, and what its
// descendants hold counts against its quota: so the first one needs what any of them needed, and of each resource as much
// as all of them held at once.
func learnFrom(ctx context.Context, c *client.Client, pid int64) (*lesson, error) {
	l := newLesson()
	request := true
	for next := []int64{pid}; len(next) > 0; next = next[1:] {
		l.agents++
		err := eachPage(ctx, c, schema.AuditLogInput{PID: &next[0], Request: &request}, func(entries []auditEntry, _ bool) bool {
			for i := range entries {
				if child := l.note(&entries[i].AuditEntry); child != 0 {
					next = append(next, child)
				}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	if len(l.holding) == 0 {
		return l, nil
	}
	exits, first := "Process.Exit", l.holding[0].seq
	err := eachPage(ctx, c, schema.AuditLogInput{Type: &exits, Request: &request, SinceSeq: &first}, func(entries []auditEntry, _ bool) bool {
		for i := range entries {
			l.noteExit(&entries[i].AuditEntry)
		}
		return true
	})
	return l, err
}

// note takes a call into account, and returns the PID of the process that it spawned, or 0.
func (l *lesson) note(e *schema.AuditEntry) (child int64) {
	if e.Type == "Net.Connect" {
		l.noteConnection(e)
		return 0
	}
	typ, tool := e.Type, toolPattern(e.Request)
	if schema.UserSpace(typ) { // an MCP server's
		typ, tool = schema.CallType, "Call:"+typ
	}
	row, ok := schema.Lookup(typ)
	if !ok && !schema.Registrable(e.Type) || ok && (row.Internal || row.Grant == schema.Everyone) {
		return 0
	}
	if refusal(e.Code) || ok && row.Grant == schema.OperatorOnly {
		r := l.refused[e.Type]
		if r.n++; r.n == 1 {
			r.why = string(e.Error)
		}
		l.refused[e.Type] = r
		return 0
	}
	l.calls[typ]++
	l.notePolicy(e)
	switch typ {
	case "Http.Fetch":
		l.noteFetch(e)
	case schema.CallType:
		l.tools[tool]++
	}
	if !e.Success {
		return 0
	}
	switch e.Type {
	case "Syscall.Spawn":
		asked, _ := objectOf(e.Request)
		l.hand(asked["capabilities"])
		out, _ := valueOf[schema.SpawnOutput](e.Payload)
		return out.ChildPID
	case "Capability.Grant", "Capability.GrantDefault":
		l.hand(e.Payload) // the token
	case "Syscall.Alloc":
		out, _ := valueOf[schema.AllocOutput](e.Payload)
		l.holding = append(l.holding, holding{seq: e.Seq, pid: e.PID, resource: out.ResourceID, held: out.Reserved.Float()})
	case "Syscall.Release":
		out, _ := valueOf[schema.ReleaseOutput](e.Payload)
		l.holding = append(l.holding, holding{seq: e.Seq, pid: e.PID, resource: out.ResourceID, less: out.Amount.Float()})
	}
	return 0
}

// toolPattern is what a call of a user-space syscall needs: the pattern of its path, or all of them where the path depends on
// what its caller had adopted.
func toolPattern(request schema.Value) string {
	members, _ := objectOf(request)
	name, _ := textOf(members["syscall"])
	if path, ok := schema.ToolPath(name); ok {
		return "Call:" + path
	}
	return schema.CallType
}

// hand notes what was granted to another process. Who grants holds it.
func (l *lesson) hand(grant schema.Value) {
	members, _ := objectOf(grant)
	patterns, _ := valueOf[[]string](members["allowed_syscalls"])
	quotas, _ := valueOf[map[string]float64](members["resource_quotas"])
	http, servers := valueOf[schema.HTTPGrant](members["http"])
	for _, pattern := range patterns {
		row, ok := named(pattern)
		switch {
		case !ok:
			l.handed[pattern] = true
		case row.Grant != schema.Everyone:
			l.handed[row.Type] = true
		}
	}
	for resource, amount := range quotas {
		l.quotas[resource] = max(l.quotas[resource], amount)
	}
	if servers {
		l.http.hosts = append(l.http.hosts, http.Hosts...)
		l.http.plain, l.http.open = l.http.plain || http.Plain, l.http.open || http.Open
	}
}

// named is the syscall of a type or a code.
func named(pattern string) (*schema.Syscall, bool) {
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

// noteFetch notes what a request needed: the server that was asked, and those that redirects led to.
func (l *lesson) noteFetch(e *schema.AuditEntry) {
	members, _ := objectOf(e.Request)
	asked, _ := textOf(members["url"])
	headers, _ := valueOf[map[string]string](members["headers"])
	need := httpNeed{}
	for _, value := range headers {
		need.open = need.open || strings.HasPrefix(value, "pwenc:v1:")
	}
	answer, _ := objectOf(e.Payload)
	last, _ := textOf(answer["url"])
	via, _ := valueOf[[]string](answer["via"])
	method, ok := textOf(members["method"])
	if !ok {
		method = "GET"
	}
	for i, address := range append([]string{asked, last}, via...) {
		need.visit(address)
		l.noteAddress(method, address)
		if i > 0 { // a redirect may have made a GET of it
			l.noteAddress("GET", address)
		}
	}
	l.fetches = append(l.fetches, need)
}

// noteConnection notes a connection that was made through the kernel.
func (l *lesson) noteConnection(e *schema.AuditEntry) {
	members, _ := objectOf(e.Request)
	host, _ := textOf(members["host"])
	port, _ := valueOf[int64](members["port"])
	if host == "" || refusal(e.Code) {
		return
	}
	if port != 0 && port != 80 && port != 443 {
		host += ":" + units(float64(port))
	}
	l.http.hosts = append(l.http.hosts, host)
}

// visit adds the server of an address.
func (n *httpNeed) visit(address string) {
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
	n.hosts = append(n.hosts, host)
	n.plain = n.plain || u.Scheme == "http"
}

// noteExit notes that processes have ended, which hold nothing any more.
func (l *lesson) noteExit(e *schema.AuditEntry) {
	in, _ := valueOf[schema.ProcessExitInput](e.Request)
	for _, pid := range in.PIDs {
		l.holding = append(l.holding, holding{seq: e.Seq, pid: pid, end: true})
	}
}

// peaks are the quotas that were needed: the most that was held at once, and the most that was granted.
func (l *lesson) peaks() map[string]float64 {
	peaks := maps.Clone(l.quotas)
	slices.SortStableFunc(l.holding, func(a, b holding) int { return int(a.seq - b.seq) })
	held := make(map[string]map[int64]float64) // by resource and process
	for _, h := range l.holding {
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

// allow is the smallest grant: the types themselves, and what was granted to others. A grant names at least one;
// Syscall.Ping adds nothing to nothing.
func (l *lesson) allow() []string {
	patterns := slices.Collect(maps.Keys(l.handed))
	for typ := range l.calls {
		row, ok := schema.Lookup(typ)
		switch {
		case ok && allows(patterns, row) || !ok && slices.Contains(patterns, typ):
		case typ != schema.CallType || l.tools[schema.CallType] > 0:
			patterns = append(patterns, typ)
		default:
			for pattern := range l.tools {
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

// servers is the smallest grant of servers.
func (l *lesson) servers() httpNeed {
	all := httpNeed{hosts: slices.Clone(l.http.hosts), plain: l.http.plain, open: l.http.open}
	for _, need := range l.fetches {
		all.hosts = append(all.hosts, need.hosts...)
		all.plain, all.open = all.plain || need.plain, all.open || need.open
	}
	slices.Sort(all.hosts)
	all.hosts = slices.Compact(all.hosts)
	return all
}

// denied returns the calls that a grant refuses, by type.
func (l *lesson) denied(allow []string, http *schema.HTTPGrant) map[string]int {
	denied := make(map[string]int)
	for typ, n := range l.calls {
		switch row, ok := schema.Lookup(typ); {
		case ok && allows(allow, row) || !ok && slices.Contains(allow, typ):
		case typ == schema.CallType:
			for pattern, n := range l.tools {
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

// within reports whether a grant has what a request needs.
func (n *httpNeed) within(grant *schema.HTTPGrant) bool {
	if grant == nil || n.plain && !grant.Plain || n.open && !grant.Open {
		return false
	}
	return !slices.ContainsFunc(n.hosts, func(host string) bool {
		return !slices.ContainsFunc(grant.Hosts, func(pattern string) bool { return serves(strings.ToLower(pattern), host) })
	})
}

// serves reports whether a pattern of a grant names a server. Both may have a port, which a pattern may leave open with *.
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

// allows reports whether one of the patterns of a grant names the syscall (PROTOCOL 5).
func allows(patterns []string, row *schema.Syscall) bool {
	domain, _, _ := strings.Cut(row.Type, ".")
	return slices.ContainsFunc(patterns, func(p string) bool {
		return p == row.Type || row.Code != "" && p == row.Code || row.Grant != schema.ByName && (p == "*" || p == domain+".*")
	})
}

// allowsTool reports whether one of the patterns of a grant names the user-space syscall of a pattern without *.
func allowsTool(patterns []string, tool string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		tree, below := strings.CutSuffix(p, "*")
		return p == tool || below && strings.HasPrefix(p, "Call:") && strings.HasPrefix(tool, tree)
	})
}
