package fetch

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Host is a pattern of a list of allowed hosts: a name (api.example.com), all names below a name
// (*.example.com, at any depth, not the name itself), an IP address ([2001:db8::1], 192.0.2.1), or
// * for any name. A port may follow (example.com:8443, *.example.com:*); without one the pattern allows the default port
// of the scheme.
type Host struct {
	name string // in lower case; ".example.com" for the names below it, "" for any name
	any  bool   // allows any port
	port uint16 // 0: the default port of the scheme
}

// ParseHost parses a pattern.
func ParseHost(pattern string) (Host, error) {
	var h Host
	name, port, ported := pattern, "", false
	if i := strings.LastIndexByte(pattern, ':'); i > strings.LastIndexByte(pattern, ']') {
		name, port, ported = pattern[:i], pattern[i+1:], true
	}
	switch {
	case ported && port == "*":
		h.any = true
	case ported:
		n, ok := parsePort(port)
		if !ok {
			return Host{}, fmt.Errorf("read host pattern %q: the port must be * or a number from 1 to 65535", pattern)
		}
		h.port = n
	}
	if name == "*" {
		return h, nil
	}
	rest, below := strings.CutPrefix(name, "*.")
	found, addr, why := parseName(rest)
	if why == "" && below && addr.IsValid() {
		why = "must be a name after *."
	}
	if why != "" {
		return Host{}, fmt.Errorf("read host pattern %q: the host %s", pattern, why)
	}
	h.name = found
	if below {
		h.name = "." + found
	}
	return h, nil
}

// String returns the pattern in canonical form.
func (h Host) String() string {
	name := h.name
	switch {
	case name == "":
		name = "*"
	case name[0] == '.':
		name = "*" + name
	case strings.Contains(name, ":"):
		name = "[" + name + "]"
	}
	switch {
	case h.any:
		return name + ":*"
	case h.port != 0:
		return name + ":" + strconv.Itoa(int(h.port))
	}
	return name
}

// matches reports whether the pattern allows the target.
func (h Host) matches(t *target) bool {
	switch {
	case h.any:
	case h.port != 0 && h.port != t.port, h.port == 0 && t.port != defaultPort(t.url.Scheme):
		return false
	}
	return h.names(t)
}

// names reports whether the pattern allows the host of the target, on any port.
func (h Host) names(t *target) bool {
	switch {
	case h.name == "":
		return !t.addr.IsValid() // * does not allow addresses
	case h.name[0] == '.':
		return !t.addr.IsValid() && strings.HasSuffix(t.name, h.name)
	}
	return h.name == t.name
}

func allowed(hosts []Host, t *target) bool {
	for _, h := range hosts {
		if h.matches(t) {
			return true
		}
	}
	return false
}

// parseName parses a host of a URL: an IPv6 address in brackets, an IPv4 address in four decimal
// parts, or an ASCII name. Other forms that some resolvers accept as an address (hexadecimal,
// octal, fewer parts) are refused with the returned reason.
func parseName(s string) (name string, addr netip.Addr, why string) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		switch {
		case strings.Contains(inner, "%"):
			return "", a, "must not name an interface: leave out what follows the %"
		case !closed || err != nil || !a.Is6():
			return "", a, "must hold an IPv6 address in its brackets"
		}
		return a.String(), a, ""
	}
	s = strings.ToLower(s)
	labels := strings.Split(s, ".")
	switch last := labels[len(labels)-1]; {
	case s == "":
		return "", addr, "must not be empty"
	case strings.HasSuffix(s, "."):
		return "", addr, "must not end with a dot"
	case len(s) > 253:
		return "", addr, "must not be longer than 253 bytes"
	case numeric(last):
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return "", a, "must be an IPv4 address of four decimal numbers without leading zeros, or a name whose last part is no number"
		}
		return a.String(), a, ""
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.ContainsFunc(l, foreign) {
			return "", addr, "must be a name of letters, digits and hyphens: write others in their xn-- form"
		}
	}
	return s, addr, ""
}

// foreign reports whether c is not allowed in a host name. The underscore is allowed, because existing host names have it.
func foreign(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// numeric reports whether some resolvers parse a name with this last label as an IPv4 address.
func numeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = "0"+hex, "0123456789abcdef"
	}
	return label != "" && strings.Trim(label, digits) == ""
}

// parsePort parses a port from 1 to 65535, which must have only digits.
func parsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n > 0 && s[0] != '+'
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}
