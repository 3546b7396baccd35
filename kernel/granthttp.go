package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// httpOf returns a grant of what may be fetched in canonical form: hosts in lower case, sorted and named once.
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

// hostPattern reports whether a pattern can be one of a host, as far as its characters say. Who fetches reads it in full.
func hostPattern(pattern string) bool {
	return pattern != "" && !strings.ContainsFunc(pattern, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-.*:[]_", r))
	})
}

// Fetch returns what the holder may fetch at tick: whatever one of the grants allows. Of an ancestor's it is what that
// ancestor may fetch too.
func (t *Token) Fetch(tick int64) []schema.HTTPGrant {
	if t == nil {
		return nil
	}
	var list []schema.HTTPGrant
	for i := range t.grants() {
		g := t.grant(i)
		switch {
		case g.HTTP == nil || expired(g, tick):
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

// HostLacking returns the PID of the first token on the way up from that of pid whose grants do not fit: the one to add to.
func (t *Token) HostLacking(pid, tick int64, fits func(*schema.HTTPGrant) bool) int64 {
	return t.lacking(pid, tick, func(g *schema.TokenGrant) bool { return g.HTTP != nil && fits(g.HTTP) })
}

// lacking returns the PID of the first token on the way up from that of pid none of whose grants fits.
func (t *Token) lacking(pid, tick int64, fits func(*schema.TokenGrant) bool) int64 {
	for t != nil {
		pid = t.PID()
		granter := int64(Operator)
		for i := range t.grants() {
			if g := t.grant(i); !expired(g, tick) && fits(g) {
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

// NoHost is the fault of a process that may fetch from nowhere.
func NoHost(pid int64, token *Token, tick int64) *fault.Fault {
	of := token.HostLacking(pid, tick, func(g *schema.HTTPGrant) bool { return len(g.Hosts) > 0 })
	return fault.HTTPForbidden.New("pid %d may fetch from no host", pid).WithFix(`allow one with "pwos cap grant %d --add Http.Fetch --host HOST"`, of)
}

// sumHTTP is what several grants come to in one, to be shown.
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

// meetHTTP returns what two grants both allow.
func meetHTTP(a, b *schema.HTTPGrant) schema.HTTPGrant {
	both := schema.HTTPGrant{Hosts: []string{}, Plain: a.Plain && b.Plain, Open: a.Open && b.Open}
	for _, one := range a.Hosts {
		for _, other := range b.Hosts {
			if host, ok := meetHost(one, other, both.Plain); ok {
				both.Hosts = append(both.Hosts, host)
			}
		}
	}
	slices.Sort(both.Hosts)
	both.Hosts = slices.Compact(both.Hosts)
	return both
}

// meetHost returns the pattern of the hosts that two patterns both stand for.
func meetHost(a, b string, plain bool) (string, bool) {
	name, ok := narrower(hostName(a), hostName(b))
	if !ok {
		return "", false
	}
	port, ok := meetPort(a[len(hostName(a)):], b[len(hostName(b)):], plain)
	return name + port, ok
}

// hostName is a pattern without its port, which stays empty or begins with a colon.
func hostName(pattern string) string {
	if i := strings.LastIndexByte(pattern, ':'); i > strings.LastIndexByte(pattern, ']') {
		return pattern[:i]
	}
	return pattern
}

// narrower returns the name that lies within the other: names do, or have nothing in common.
func narrower(a, b string) (string, bool) {
	switch {
	case a == b || nameWithin(a, b):
		return a, true
	case nameWithin(b, a):
		return b, true
	}
	return "", false
}

// nameWithin reports whether all that a name stands for is a part of what another does. No pattern includes an address.
func nameWithin(name, of string) bool {
	if isAddress(name) {
		return false
	}
	return of == everything || (strings.HasPrefix(of, "*.") && strings.HasSuffix(name, of[1:]))
}

func isAddress(name string) bool {
	return name != everything && (name[:1] == "[" || !strings.ContainsFunc(name, func(r rune) bool { return r >= 'a' && r <= 'z' }))
}

// meetPort returns the ports that two patterns share. No port stands for that of the scheme: for 443, and in the network of an
// agent for 80 too. What it shares with 443 is 443, but where plain http is allowed nothing is made of that.
func meetPort(a, b string, plain bool) (string, bool) {
	const any, tls = ":*", ":443"
	switch {
	case a == b || b == any:
		return a, true
	case a == any:
		return b, true
	case !plain && (a == "" && b == tls || a == tls && b == ""):
		return tls, true
	}
	return "", false
}

// coversHTTP returns an error where a grant allows to fetch what t may not.
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
		return fault.CapabilityTooMuch.New("pid %d may not grant http: without TLS: it does not hold it itself", t.PID())
	case g.Open && !holds(func(own *schema.HTTPGrant) bool { return own.Open }):
		return fault.CapabilityTooMuch.New("pid %d may not grant that sealed headers are opened: it does not hold it itself", t.PID())
	}
	for _, host := range g.Hosts {
		if !holds(func(own *schema.HTTPGrant) bool {
			return (own.Plain || !g.Plain) && (own.Open || !g.Open) &&
				slices.ContainsFunc(own.Hosts, func(pattern string) bool { return hostCovers(pattern, host) })
		}) {
			return fault.CapabilityTooMuch.New("pid %d may not grant the host %s: it does not hold it itself", t.PID(), host)
		}
	}
	return nil
}

// hostCovers reports whether all that a pattern stands for is covered by own. It errs on the side of no: a pattern with a
// port, and an address, are covered by the same alone.
func hostCovers(own, pattern string) bool {
	ownName, name := hostName(own), hostName(pattern)
	if ownName != name && !nameWithin(name, ownName) {
		return false
	}
	ownPort, port := own[len(ownName):], pattern[len(name):]
	return ownPort == port || ownPort == ":*"
}
