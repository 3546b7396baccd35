package schema

import "bytes"

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
var credentials = [...]string{"auth", "cookie", "token", "secret", "passw", "credential", "session", "api-key", "apikey"}

// lets reports whether a header of that name, in lower case, lets somebody in. Keys do, but for those that name a request.
func lets(name []byte) bool {
	for _, part := range credentials {
		if bytes.Contains(name, []byte(part)) {
			return true
		}
	}
	return bytes.HasSuffix(name, []byte("key")) && !bytes.HasSuffix(name, []byte("idempotency-key"))
}

// shownHeaders is a dictionary of headers, as shownHeader has them. What is none was refused.
func shownHeaders(value []byte) []byte {
	if value[0] != '{' {
		return value
	}
	shown, _ := replace(nil, value, shownHeader)
	return shown
}

// shownHeader is the value of a header without what it lets somebody in with, unless that is sealed.
func shownHeader(name, value []byte) []byte {
	if bytes.HasPrefix(value, []byte(`"pwenc:v1:`)) {
		return value
	}
	if lets(bytes.ToLower(name)) {
		return []byte(redacted)
	}
	return value
}

// shownURL is a URL without its user and password (RFC 3986, section 3.2.1). What is no URL, such as a path, is as it is.
func shownURL(value []byte) []byte {
	if value[0] != '"' {
		return value
	}
	scheme, rest, ok := bytes.Cut(unquote(value), []byte("//"))
	authority := rest
	if end := bytes.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	at := bytes.LastIndexByte(authority, '@')
	if !ok || at < 0 || string(authority[:at]) == userinfo || len(scheme) > 0 && !bytes.HasSuffix(scheme, []byte(":")) {
		return value
	}
	return appendString(nil, string(scheme)+"//"+userinfo+string(rest[at:]))
}

// userinfo stands in the place of a user and a password. It is no valid one.
const userinfo = "[redacted]"

// Redacts reports whether Redact takes something out.
func (t *Type) Redacts(in any, failed bool) bool { return t.secret >= t.hidden(in, failed) }

// hidden is the secrecy from which on a value is left out.
func (t *Type) hidden(in any, failed bool) secrecy {
	if c, ok := in.(Confidential); failed && ok && c.Confidential() {
		return secretIfFailed
	}
	return secretAlways
}
