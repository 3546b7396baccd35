package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// httpOf returns a grant of hosts in canonical form: lower case, sorted, without duplicates.
func httpOf(grant *schema.HTTPGrant) (*schema.HTTPGrant, *fault.Fault) {
	if grant == nil {
		return nil, nil
	}
	out := &schema.HTTPGrant{Hosts: make([]string, 0, len(grant.Hosts)), Plain: grant.Plain, Open: grant.Open}
	for i, host := range grant.Hosts {
		host = strings.ToLower(host)
		if !hostPattern(host) {
			return nil, Invalid(fmt.Sprintf("http.hosts[%d]", i), "is %q, which is no host: name one such as api.example.com, *.example.com or *, with or without a port", host)
		}
		out.Hosts = append(out.Hosts, host)
	}
	slices.Sort(out.Hosts)
	out.Hosts = slices.Compact(out.Hosts)
	return out, nil
}

// hostPattern reports whether a pattern has only characters of a host pattern. effect/fetch parses it in full.
func hostPattern(pattern string) bool {
	return pattern != "" && !strings.ContainsFunc(pattern, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-.*:[]_", r))
	})
}

// Fetch returns what the holder may fetch at tick: whatever one of its grants allows. A grant from
// an ancestor is reduced to what that ancestor may fetch.
func (t *Token) Fetch(tick int64) []schema.HTTPGrant {
	if t == nil {
		return nil
	}
	var list []schema.HTTPGrant
	for i := range t.grantCount() {
		g := t.grant(i)
		switch {
		case g.HTTP == nil || Expired(g, tick):
		case g.GrantedBy == Operator:
			list = append(list, *g.HTTP)
		case t.Granter != nil:
			for _, above := range t.Granter.Fetch(tick) {
				if both := meetHTTP(g.HTTP, &above); len(both.Hosts) > 0 {
					list = append(list, both)
				}
			}
		}
	}
	return list
}

// HostLacking returns the PID of the first token, from that of pid upwards, whose grants do not
// cover the host, and need it added.
func (t *Token) HostLacking(pid, tick int64, fits func(*schema.HTTPGrant) bool) int64 {
	return t.lacking(pid, tick, func(g *schema.TokenGrant) bool { return g.HTTP != nil && fits(g.HTTP) })
}

// lacking returns the PID of the first token, from that of pid upwards, none of whose grants fits.
func (t *Token) lacking(pid, tick int64, fits func(*schema.TokenGrant) bool) int64 {
	for t != nil {
		pid = t.PID()
		granter := int64(Operator)
		for i := range t.grantCount() {
			if g := t.grant(i); !Expired(g, tick) && fits(g) {
				granter = g.GrantedBy
			}
		}
		if granter == Operator {
			return pid
		}
		pid, t = granter, t.Granter
	}
	return pid
}

// NoHost is the fault of a process that may fetch nothing.
func NoHost(pid int64, token *Token, tick int64) *fault.Fault {
	of := token.HostLacking(pid, tick, func(g *schema.HTTPGrant) bool { return len(g.Hosts) > 0 })
	return fault.HTTPForbidden.New("pid %d may fetch from no host", pid).WithFix("allow one with %s", AddCommand(token, of, tick, "Http.Fetch", "--host", "HOST"))
}

// sumHTTP merges several grants into one, for display.
func sumHTTP(list []schema.HTTPGrant) *schema.HTTPGrant {
	if len(list) == 0 {
		return nil
	}
	sum := &schema.HTTPGrant{Hosts: []string{}}
	for _, g := range list {
		sum.Hosts = append(sum.Hosts, g.Hosts...)
		sum.Plain, sum.Open = sum.Plain || g.Plain, sum.Open || g.Open
	}
	slices.Sort(sum.Hosts)
	sum.Hosts = slices.Compact(sum.Hosts)
	return sum
}

// meetHTTP returns the intersection of two grants.
func meetHTTP(a, b *schema.HTTPGrant) schema.HTTPGrant {
	both := schema.HTTPGrant{Hosts: []string{}, Plain: a.Plain && b.Plain, Open: a.Open && b.Open}
	inA, inB := hostsOf(a.Hosts), hostsOf(b.Hosts)
	for name, ports := range inA.ports {
		inB.related(name, func(other string) {
			narrow := name
			if nameWithin(other, name) {
				narrow = other
			}
			for port := range ports {
				meetPorts(port, inB.ports[other], both.Plain, func(port string) { both.Hosts = append(both.Hosts, narrow+port) })
			}
		})
	}
	slices.Sort(both.Hosts)
	both.Hosts = slices.Compact(both.Hosts)
	return both
}

// hosts indexes patterns by name. Finding those related to a name takes a time that depends on how many are related,
// not on their total.
type hosts struct {
	ports    map[string]map[string]bool // by name
	backward []string                   // the names reversed and sorted, so that those with a common ending are neighbours
}

func hostsOf(list []string) *hosts {
	h := &hosts{ports: make(map[string]map[string]bool, len(list))}
	for _, pattern := range list {
		name := hostName(pattern)
		if h.ports[name] == nil {
			h.ports[name] = make(map[string]bool, 1)
			h.backward = append(h.backward, backward(name))
		}
		h.ports[name][pattern[len(name):]] = true
	}
	slices.Sort(h.backward)
	return h
}

// related calls yield with the names that include a name, the name itself, and those that it includes.
func (h *hosts) related(name string, yield func(name string)) {
	look := func(one string) {
		if h.ports[one] != nil {
			yield(one)
		}
	}
	look(name)
	if name != everything && !isAddress(name) {
		look(everything)
		for i := range len(name) {
			if above := everything + name[i:]; name[i] == '.' && above != name {
				look(above)
			}
		}
	}
	ending, tree := strings.CutPrefix(name, everything)
	if !tree {
		return
	}
	ending = backward(ending)
	from, _ := slices.BinarySearch(h.backward, ending)
	for _, one := range h.backward[from:] {
		if !strings.HasPrefix(one, ending) {
			return
		}
		if below := backward(one); below != name && nameWithin(below, name) {
			yield(below)
		}
	}
}

func backward(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// hostName splits a pattern into name and port; the port is empty or begins with a colon.
func hostName(pattern string) string {
	if i := strings.LastIndexByte(pattern, ':'); i > strings.LastIndexByte(pattern, ']') {
		return pattern[:i]
	}
	return pattern
}

// nameWithin reports whether everything that a name matches is matched by another. No pattern includes an address.
func nameWithin(name, of string) bool {
	if isAddress(name) {
		return false
	}
	return of == everything || (strings.HasPrefix(of, "*.") && strings.HasSuffix(name, of[1:]))
}

func isAddress(name string) bool {
	return name != everything && (strings.HasPrefix(name, "[") || !strings.ContainsFunc(name, func(r rune) bool { return r >= 'a' && r <= 'z' }))
}

// meetPorts calls yield with the ports that a pattern has in common with a list. No port means the
// scheme's: 443, and in an agent's network also 80. In common with 443 it has 443, unless plain
// http is allowed, which adds nothing.
func meetPorts(port string, list map[string]bool, plain bool, yield func(port string)) {
	const any, tls = ":*", ":443"
	if list[port] || list[any] {
		yield(port)
	}
	switch {
	case port == any:
		for other := range list {
			yield(other)
		}
	case !plain && (port == "" && list[tls] || port == tls && list[""]):
		yield(tls)
	}
}

// coversHTTP returns an error if a grant allows a fetch that t does not.
func (t *Token) coversHTTP(g *schema.HTTPGrant, tick int64) *fault.Fault {
	if g == nil {
		return nil
	}
	own := t.Fetch(tick)
	holds := func(fits func(*schema.HTTPGrant) bool) bool {
		return slices.ContainsFunc(own, func(own schema.HTTPGrant) bool { return fits(&own) })
	}
	switch {
	case g.Plain && !holds(func(own *schema.HTTPGrant) bool { return own.Plain }):
		return fault.CapabilityTooMuch.New("pid %d may not grant http: without TLS: it does not hold it itself", t.PID()).WithFix(holdMore)
	case g.Open && !holds(func(own *schema.HTTPGrant) bool { return own.Open }):
		return fault.CapabilityTooMuch.New("pid %d may not grant that sealed headers are opened: it does not hold it itself", t.PID()).WithFix(holdMore)
	}
	for _, host := range g.Hosts {
		if !holds(func(own *schema.HTTPGrant) bool {
			return (own.Plain || !g.Plain) && (own.Open || !g.Open) &&
				slices.ContainsFunc(own.Hosts, func(pattern string) bool { return hostCovers(pattern, host) })
		}) {
			return fault.CapabilityTooMuch.New("pid %d may not grant the host %s: it does not hold it itself", t.PID(), host).WithFix(holdMore)
		}
	}
	return nil
}

// hostCovers reports whether own covers everything that a pattern matches. It may say no wrongly, never yes: a
// pattern with a port, and an address, are covered only by the same one.
func hostCovers(own, pattern string) bool {
	ownName, name := hostName(own), hostName(pattern)
	if ownName != name && !nameWithin(name, ownName) {
		return false
	}
	ownPort, port := own[len(ownName):], pattern[len(name):]
	return ownPort == port || ownPort == ":*"
}
