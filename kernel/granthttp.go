package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// httpOf returns a grant of what may be fetched in canonical form: hosts in lower case, sorted and named once.
func httpOf(grant *schema.HTTPGrant) (*schema.HTTPGrant, *schema.Error) {
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

// coversHTTP returns an error where other may fetch what t may not.
func (t *Token) coversHTTP(other *schema.HTTPGrant) *schema.Error {
	if other == nil {
		return nil
	}
	own := t.HTTP
	if own == nil {
		own = &schema.HTTPGrant{}
	}
	for _, host := range other.Hosts {
		if !slices.ContainsFunc(own.Hosts, func(pattern string) bool { return hostCovers(pattern, host) }) {
			return schema.Errorf(schema.Forbidden, "pid %d may not grant the host %s: it does not hold it itself", t.PID, host)
		}
	}
	switch {
	case other.Plain && !own.Plain:
		return schema.Errorf(schema.Forbidden, "pid %d may not grant http: without TLS: it does not hold it itself", t.PID)
	case other.Open && !own.Open:
		return schema.Errorf(schema.Forbidden, "pid %d may not grant that sealed headers are opened: it does not hold it itself", t.PID)
	}
	return nil
}

// hostCovers reports whether all that a pattern stands for is covered by own. It errs on the side of no: a pattern with a
// port, and an address, are covered by the same alone.
func hostCovers(own, pattern string) bool {
	switch {
	case own == pattern:
		return true
	case own == "*:*":
		return !strings.HasPrefix(pattern, "[") && strings.ContainsFunc(pattern, func(r rune) bool { return r >= 'a' && r <= 'z' })
	case strings.ContainsAny(pattern, ":[") || !strings.ContainsFunc(pattern, func(r rune) bool { return r >= 'a' && r <= 'z' }):
		return false
	case own == "*":
		return true
	case strings.HasPrefix(own, "*.") && !strings.Contains(own, ":"):
		return strings.HasSuffix(pattern, own[1:])
	}
	return false
}
