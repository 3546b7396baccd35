package schema

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Confidential is implemented by the data of a syscall that has fields tagged `secret:"failed"`, to say which calls they
// are about.
type Confidential interface {
	Confidential() bool
}

// redacted stands in the place of a secret.
const redacted = `"[redacted]"`

// Redact returns data, which Decode has accepted as in, without its secrets: members whose field is tagged `secret` keep
// their place and lose their value. failed says that the call came to nothing. Without secrets it is data itself, and what
// it returned it returns again.
func (t *Type) Redact(data []byte, in any, failed bool) []byte {
	hidden := t.hidden(in, failed)
	if t.secret < hidden && !t.partly || len(data) == 0 || data[0] != '{' {
		return data
	}
	out, _ := replace(nil, data, func(name, value []byte) []byte {
		i := t.find(name)
		switch {
		case i < 0:
			return value
		case t.fields[i].secret >= hidden:
			return []byte(redacted)
		case t.fields[i].shown != nil:
			return t.fields[i].shown(value)
		}
		return value
	})
	return out
}

// replace appends the object raw with each value as by gives it, and says whether one is another. Without one it is raw.
func replace(dst, raw []byte, by func(name, value []byte) []byte) (out []byte, some bool) {
	out = append(dst, '{')
	members(raw, func(name, value []byte) bool {
		if len(out) > len(dst)+1 {
			out = append(out, ',')
		}
		kept := by(name, value)
		some = some || !bytes.Equal(kept, value)
		out = append(append(appendString(out, string(name)), ':'), kept...)
		return true
	})
	if !some {
		return append(dst, raw...), false
	}
	return append(out, '}'), true
}

// credentials are parts of the names of headers whose values let somebody in (RFC 9110, RFC 6265, and what services use).
var credentials = [...]string{
	"auth", "cookie", "token", "secret", "pass", "credential", "session", "api-key", "apikey", "jwt", "assertion", "otp",
}

// lets reports whether a header of that name, in lower case, lets somebody in. Keys do, but for those that name a request.
func lets(name []byte) bool {
	for _, part := range credentials {
		if bytes.Contains(name, []byte(part)) {
			return true
		}
	}
	return bytes.HasSuffix(name, []byte("key")) && !bytes.HasSuffix(name, []byte("idempotency-key"))
}

// shownHeaders is a dictionary of headers without what lets somebody in, unless that is sealed.
func shownHeaders(value []byte) []byte {
	if value[0] != '{' { // it was refused
		return value
	}
	shown, _ := replace(nil, value, func(name, value []byte) []byte {
		if lets(bytes.ToLower(name)) && !sealed(value) {
			return []byte(redacted)
		}
		return value
	})
	return shown
}

// sealed reports whether a JSON string has the form of a sealed value, so that it may be one.
func sealed(value []byte) bool {
	if value[0] != '"' {
		return false
	}
	text, ok := bytes.CutPrefix(unquote(value), []byte("pwenc:v1:"))
	if !ok {
		return false
	}
	inner, err := base64.RawURLEncoding.AppendDecode(nil, bytes.TrimRight(text, "="))
	return err == nil && bytes.HasPrefix(inner, []byte("{")) && bytes.HasSuffix(inner, []byte("}"))
}

// shownURL is an address without its user and password. What no syscall would take for an address loses all that may be one.
// What is none, or has neither, is as it was.
func shownURL(value []byte) []byte {
	if value[0] != '"' { // it was refused
		return value
	}
	text := unquote(value)
	at := bytes.LastIndexByte(text, '@')
	start := behindScheme(text)
	if at < start || start == 0 || harmless(text[start:], string(text[:start])) || string(text[start:at]) == userinfo {
		return value
	}
	return appendString(nil, string(text[:start])+userinfo+string(text[at:]))
}

// userinfo stands in the place of a user and a password. It is no valid one.
const userinfo = "[redacted]"

// behindScheme is where the scheme of text ends, with the slashes behind it: 0 where it is a path.
func behindScheme(text []byte) int {
	end := bytes.IndexAny(text, ":/?#") + 1
	if end == 0 || text[end-1] != ':' && !bytes.HasPrefix(text, []byte("//")) {
		return 0
	}
	return len(text) - len(bytes.TrimLeft(text[end:], "/"))
}

// harmless reports whether what stands behind a scheme begins with a host, and no more than its port, or has none.
func harmless(rest []byte, scheme string) bool {
	switch strings.ToLower(scheme) {
	case "os:///":
		return true
	case "https://", "http://":
	default:
		return false
	}
	if end := bytes.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if bytes.IndexByte(rest, '@') >= 0 {
		return false
	}
	_, port, _ := bytes.Cut(rest[bytes.IndexByte(rest, ']')+1:], []byte(":"))
	return len(bytes.Trim(port, "0123456789")) == 0
}

// Withholds reports whether Redact leaves out all of a member, so that the record does not tell what was asked for.
func (t *Type) Withholds(in any, failed bool) bool { return t.secret >= t.hidden(in, failed) }

// hidden is the secrecy from which on a value is left out.
func (t *Type) hidden(in any, failed bool) secrecy {
	if c, ok := in.(Confidential); failed && ok && c.Confidential() {
		return secretIfFailed
	}
	return secretAlways
}
