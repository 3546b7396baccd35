package uri

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// web is an https: address in canonical form.
type web struct {
	host  string // with its port, unless that is 443
	path  path   // segments stay encoded
	query string // with its question mark
}

// parseWeb parses the text after "https:".
func parseWeb(text string) (web, error) {
	rest, ok := strings.CutPrefix(text, "//")
	if !ok {
		return web{}, errScheme
	}
	at := authority(rest)
	if strings.Contains(at, "@") {
		return web{}, errUser
	}
	host, err := canonicalHost(at)
	if err != nil {
		return web{}, err
	}
	return web{host: host}.to(strings.TrimPrefix(rest[len(at):], "/"), nil)
}

// authority returns the part of text up to the path: user, host and port (RFC 3986 3.2).
func authority(text string) string {
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		return text[:end]
	}
	return text
}

// to returns the address of a reference, resolved relative to the given segments on w's host.
func (w web) to(reference string, from []string) (web, error) {
	if strings.Contains(reference, "#") {
		return web{}, errCharacter
	}
	text, query, asked := strings.Cut(reference, "?")
	p, err := walk(from, text, true, webSegment)
	if err != nil {
		return web{}, err
	}
	w.path, w.query = p, ""
	if asked {
		if query, err = recode(query, "/?"); err != nil {
			return web{}, err
		}
		w.query = "?" + query
	}
	return w, nil
}

// webSegment returns one segment of an address in canonical form. It stays encoded, since only the server knows what an
// encoded slash means.
func webSegment(segment string) (string, error) {
	text, err := recode(segment, "")
	if err == nil && (text == "." || text == "..") {
		return "", errEncoding // it was encoded; walk handles a plain one
	}
	return text, err
}

// recode normalizes the encoding of a segment: required encodings are added, others decoded, with digits in upper case (RFC
// 3986 6.2.2). more are further characters that need no encoding.
func recode(text, more string) (string, error) {
	if !readable(text) || strings.Contains(text, " ") {
		return "", errCharacter
	}
	var out []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '%':
			b, ok := hex(text[i+1:])
			if !ok || b < ' ' || b == 0x7f {
				return "", errEncoding
			}
			i += 2
			if plain(b) {
				out = append(out, b)
			} else {
				out = append(out, '%', digits[b>>4], digits[b&15])
			}
		case strings.IndexByte(more, c) >= 0:
			out = append(out, c)
		default:
			out = appendEncoded(out, text[i:i+1])
		}
	}
	return string(out), nil
}

// uri returns the address as text.
func (w web) uri() string {
	var b strings.Builder
	b.WriteString("https://" + w.host)
	for _, s := range w.path.segments {
		b.WriteString("/" + s)
	}
	if w.path.dir {
		b.WriteByte('/')
	}
	return b.String() + w.query
}

// canonicalHost returns host and port in lower case, without the default port of https:.
func canonicalHost(text string) (string, error) {
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		host, port = text[:i], text[i+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return "", errHost
		}
	}
	host = strings.ToLower(host)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		if !ok || err != nil || !ip.Is6() || ip.Zone() != "" || strings.Contains(inner, "%") {
			return "", errHost
		}
		host = "[" + ip.String() + "]"
	} else if !dnsName(host) {
		return "", errHost
	}
	if port != "" && port != "443" {
		host += ":" + port
	}
	return host, nil
}

// dnsName reports whether host is a DNS name in ASCII, or an IPv4 address in the usual form. A last label of only digits,
// or one that begins with 0x, is refused, since some programs read it as an address, others as a name.
func dnsName(host string) bool {
	const longest, longestLabel = 253, 63
	if host == "" || len(host) > longest {
		return false
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		odd := strings.ContainsFunc(l, func(r rune) bool {
			return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
		})
		if l == "" || len(l) > longestLabel || odd || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
	}
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		ip, err := netip.ParseAddr(host)
		return err == nil && ip.String() == host
	}
	return true
}

// Origin returns the normalized security principal of mutable state (ABI 6.2). Without an origin it is the value of root.
// An address with a scheme and a host, or file:///…, stays unchanged. Any other text is a name, which becomes
// https://<name>.local/ in lower case and without all characters except a-z, 0-9 and the hyphen; names that differ only in
// removed characters are one origin. The error for a name without any of those characters is NameInvalid.
func Origin(origin, root string) (string, error) {
	if origin == "" {
		return root, nil
	}
	if address(origin) {
		return origin, nil
	}
	name := strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(origin))
	if strings.Trim(name, "-") == "" {
		return "", refuse(origin, errOrigin)
	}
	return "https://" + name + ".local/", nil
}

// address reports whether text is an address instead of a name. A name with a colon, such as team:dev, is not an address,
// since it has no host or path that could be a principal.
func address(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !readable(text) || strings.Contains(text, " ") {
		return false
	}
	return u.Scheme != "" && u.Host != "" || u.Scheme == "file" && strings.HasPrefix(u.Path, "/")
}
