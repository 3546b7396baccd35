package uri

import (
	"net/url"
	"strings"
)

// Origin returns the security principal of mutable state in its normal form (ABI 6.2). No origin means the value of root as
// it is; an address with a scheme and a host, or file:///…, is taken as it is; anything else is a name, which becomes
// https://<name>.local/ with its letters in lower case and all but a-z, 0-9 and the hyphen gone. Names that differ only in
// what goes are the same origin. A name of which nothing is left is NameInvalid.
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

// address tells an address from a name. A name with a colon in it, such as team:dev, is none: it has nothing that could
// be a principal of its own.
func address(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !readable(text) || strings.Contains(text, " ") {
		return false
	}
	return u.Scheme != "" && u.Host != "" || u.Scheme == "file" && strings.HasPrefix(u.Path, "/")
}
