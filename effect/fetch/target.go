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

// maxURL is the longest URL, in bytes.
const maxURL = 8 << 10

// target is a parsed URL in the canonical form in which it is checked and sent.
type target struct {
	url  *url.URL
	name string     // the host: a name in lower case, or an address without brackets
	addr netip.Addr // valid if the host is an address
	port uint16
}

// parseTarget parses a URL, relative to base if that is not nil. why is the error, as text that continues "url", or "".
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

// escape percent-encodes the characters that are not allowed in a URL. Otherwise net/url would encode the whole path again, and an
// escaped slash would become a slash.
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

// authority returns the host with its port, which it omits if it is the default port of the scheme.
func (t *target) authority(scheme string) string {
	if t.port != defaultPort(scheme) {
		return net.JoinHostPort(t.name, strconv.Itoa(int(t.port)))
	}
	if t.addr.Is6() {
		return "[" + t.name + "]"
	}
	return t.name
}

// sameOrigin reports whether t and o have the same scheme, host and port.
func (t *target) sameOrigin(o *target) bool {
	return t.url.Scheme == o.url.Scheme && t.name == o.name && t.port == o.port
}

// permit returns a fault if the policy does not allow the target. It looks up no name.
func (p *Policy) permit(t *target) *fault.Fault {
	host := false
	for one := p; one != nil; one = one.Else {
		if one.allows(t) {
			return nil
		}
		host = host || one.hasHost(t)
	}
	if host { // the host is allowed, but not the scheme
		return denied("the caller may not fetch over plain http: use https://%s, or %s", t.url.Host,
			p.advice([]string{"--http-plain", "--host", t.url.Host}, func(one *Policy) bool { return one.allows(t) })).With("host", t.url.Host)
	}
	return denied("the caller may not fetch from %s: %s", t.url.Host,
		p.advice([]string{"--host", t.url.Host}, func(one *Policy) bool { return one.hasHost(t) })).With("host", t.url.Host)
}

// grounds describes why the policy allows the URL address, for an explanation.
func (p *Policy) grounds(address string) string {
	t, _ := parseTarget(address, nil) // Check has validated it
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

// opener returns the function that opens sealed values for the target, nil if the policy allows none.
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

// advice returns a text that describes how the operator can allow a request.
func (p *Policy) advice(flags []string, enough func(*Policy) bool) string {
	if p.Advise == nil {
		return "have that granted"
	}
	return p.Advise(flags, enough)
}

// Normal returns the canonical form of a URL, and its host; ok is false if the URL is not valid.
func Normal(raw string) (normal, host string, ok bool) {
	t, why := parseTarget(raw, nil)
	if why != "" {
		return "", "", false
	}
	return t.url.String(), t.name, true
}
