package fetch

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
)

// maxURL bounds a URL, in bytes.
const maxURL = 8 << 10

// target is a URL that was read, in the one form in which it is judged and sent.
type target struct {
	url  *url.URL
	name string     // the host: a name in lower case, or an address without brackets
	addr netip.Addr // valid where the host is an address
	port uint16
}

// parseTarget parses a URL, relative to base if it is not nil. An error is worded to follow "url".
func parseTarget(raw string, base *url.URL) (t *target, why string) {
	if len(raw) > maxURL {
		return nil, "must not be longer than 8192 bytes"
	}
	u, err := url.Parse(escape(raw))
	if err == nil && base != nil {
		u = base.ResolveReference(u)
	}
	switch {
	case err != nil, u.Opaque != "", !u.IsAbs():
		return nil, "must be an absolute URL such as https://example.com/path"
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, "must begin with https://"
	case u.User != nil:
		return nil, "must not hold a user or a password: send them in the header Authorization"
	}
	t = &target{port: defaultPort(u.Scheme)}
	host := u.Host
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if port := host[i+1:]; port != "" {
			var ok bool
			if t.port, ok = parsePort(port); !ok {
				return nil, "must have a port from 1 to 65535"
			}
		}
		host = host[:i]
	}
	if t.name, t.addr, why = parseName(host); why != "" {
		return nil, "has a host that " + why
	}
	t.url = &url.URL{Scheme: u.Scheme, Host: t.authority(u.Scheme), Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery}
	if t.url.Path == "" {
		t.url.Path = "/"
	}
	return t, ""
}

// escape writes a character that is not allowed in a URL as its common escape. Otherwise the
// library would write the whole path again, and an escaped slash would become a slash.
func escape(raw string) string {
	const hex = "0123456789ABCDEF"
	var out []byte
	for i := range len(raw) {
		if c := raw[i]; c >= 0x80 || strings.IndexByte(" \"<>\\^`{|}", c) >= 0 {
			out = append(out, '%', hex[c>>4], hex[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// authority is the host with its port, unless that is the scheme's.
func (t *target) authority(scheme string) string {
	if t.port != defaultPort(scheme) {
		return net.JoinHostPort(t.name, strconv.Itoa(int(t.port)))
	}
	if t.addr.Is6() {
		return "[" + t.name + "]"
	}
	return t.name
}

// sameOrigin reports whether what was meant for t may be sent to o too.
func (t *target) sameOrigin(o *target) bool {
	return t.url.Scheme == o.url.Scheme && t.name == o.name && t.port == o.port
}

// permit checks the target against the caller's policy, before anything is looked up.
func (p *Policy) permit(t *target) *fault.Fault {
	host := false
	for one := p; one != nil; one = one.Else {
		if one.allows(t) {
			return nil
		}
		host = host || one.hasHost(t)
	}
	if host { // so it is the scheme that is not allowed
		return denied("the caller may not fetch over plain http: use https://%s, or %s", t.url.Host,
			p.advice("--http-plain --host "+t.url.Host, func(one *Policy) bool { return one.allows(t) })).With("host", t.url.Host)
	}
	return denied("the caller may not fetch from %s: %s", t.url.Host,
		p.advice("--host "+t.url.Host, func(one *Policy) bool { return one.hasHost(t) })).With("host", t.url.Host)
}

// grounds says by what an address that is permitted is.
func (p *Policy) grounds(address string) string {
	t, _ := parseTarget(address, nil) // which it is
	for one := p; one != nil; one = one.Else {
		if !one.allows(t) {
			continue
		}
		for _, h := range one.Hosts {
			if h.matches(t) {
				return "it may fetch from " + h.String()
			}
		}
	}
	return "it may fetch from everywhere"
}

// opener returns what opens sealed values that are sent to the target, nil if nothing may.
func (p *Policy) opener(t *target) func(ctx context.Context, sealed string) (string, error) {
	for one := p; one != nil; one = one.Else {
		if one.Open != nil && one.allows(t) {
			return one.Open
		}
	}
	return nil
}

func (p *Policy) allows(t *target) bool {
	return p.hasHost(t) && (p.PlainHTTP || t.url.Scheme == "https")
}

func (p *Policy) hasHost(t *target) bool { return p.AnyHost || allowed(p.Hosts, t) }

// advice describes how the operator can allow a request.
func (p *Policy) advice(flags string, enough func(*Policy) bool) string {
	if p.Advise == nil {
		return "have that granted"
	}
	return p.Advise(flags, enough)
}

// Normal returns a URL in the form in which it is fetched, with its host; ok is false if it is not
// a valid one.
func Normal(raw string) (normal, host string, ok bool) {
	t, why := parseTarget(raw, nil)
	if why != "" {
		return "", "", false
	}
	return t.url.String(), t.name, true
}
