package jsontype

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Confidential is implemented by data with members tagged `keep:"applied"` to narrow that: a failed call that is not
// confidential keeps them too.
type Confidential interface {
	Confidential() bool
}

// redacted replaces a withheld value.
const redacted = `"[redacted]"`

// Redact returns data, which Decode has accepted as in, in the form that the journal may hold: a
// withheld member keeps its name and loses its value. failed says that the call did not succeed. If
// nothing is withheld, Redact returns data itself; redacting twice changes nothing more.
func (t *Type) Redact(data []byte, in any, failed bool) []byte {
	mode := modeOf(in, failed)
	if !t.changes[mode] || len(data) == 0 || string(data) == "null" {
		return data
	}
	return t.redactValue(data, mode)
}

// Withholds reports whether Redact leaves out all of a member, so that the record does not tell what was asked for.
func (t *Type) Withholds(in any, failed bool) bool { return t.omits[modeOf(in, failed)] }

// Undecided returns the members without a tag `keep`, nested ones included.
func (t *Type) Undecided() []string {
	return t.membersThat("", func(f *field) bool { return f.keep == undecided })
}

// Withheld returns the members, nested ones included, that are not kept entirely even if the call succeeded. A row
// that recovery applies must have none, since they would be missing.
func (t *Type) Withheld() []string {
	return t.membersThat("", func(f *field) bool { return f.withheld(false) || f.filter != nil })
}

// membersThat returns the paths of the members that satisfy is.
func (t *Type) membersThat(at string, is func(*field) bool) (paths []string) {
	switch t.shape {
	case array:
		return t.elem.membersThat(at+"[]", is)
	case dictionary:
		return t.elem.membersThat(join(at, "*"), is)
	}
	for i := range t.fields {
		f := &t.fields[i]
		if is(f) {
			paths = append(paths, join(at, f.name))
		}
		paths = append(paths, f.typ.membersThat(join(at, f.name), is)...)
	}
	return paths
}

// The two modes of Redact.
const (
	applied = iota
	failure
)

func modeOf(in any, failed bool) int {
	if c, ok := in.(Confidential); !failed || ok && !c.Confidential() {
		return applied
	}
	return failure
}

// withholding notes what Redact does to values of t.
func (t *Type) withholding() {
	if t.elem != nil {
		t.changes, t.omits = t.elem.changes, t.elem.omits
	}
	for i := range t.fields {
		f := &t.fields[i]
		for mode := range t.changes {
			all := f.withheld(mode == failure)
			t.omits[mode] = t.omits[mode] || all || f.typ.omits[mode]
			t.changes[mode] = t.changes[mode] || all || f.filter != nil || f.typ.changes[mode]
		}
	}
}

// redactValue returns a value of t in the form that the journal may hold. A value of another shape is
// withheld.
func (t *Type) redactValue(value []byte, mode int) []byte {
	switch {
	case !t.changes[mode]:
		return value
	case t.shape == record && t.short >= 0 && value[0] == '"':
		return t.fields[t.short].redact(value, mode)
	case t.shape == array && value[0] == '[':
		return t.redactArray(value, mode)
	case t.shape == array || value[0] != '{':
		return []byte(redacted)
	}
	out, _ := replace(nil, value, func(name, value []byte) []byte {
		if t.shape == dictionary {
			return t.elem.redactValue(value, mode)
		}
		if i := t.find(name); i >= 0 {
			return t.fields[i].redact(value, mode)
		}
		return []byte(redacted)
	})
	return out
}

func (f *field) redact(value []byte, mode int) []byte {
	switch {
	case f.withheld(mode == failure):
		return []byte(redacted)
	case f.filter != nil:
		return f.filter(value)
	}
	return f.typ.redactValue(value, mode)
}

// redactArray returns the array as it was written where no element changes.
func (t *Type) redactArray(value []byte, mode int) []byte {
	out, some := []byte{'['}, false
	Elements(value, func(elem []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		kept := t.elem.redactValue(elem, mode)
		some = some || !bytes.Equal(kept, elem)
		out = append(out, kept...)
		return true
	})
	if !some {
		return value
	}
	return append(out, ']')
}

// replace appends the object raw with each value as by returns it, and reports whether one differs. Otherwise it appends raw.
func replace(dst, raw []byte, by func(name, value []byte) []byte) (out []byte, some bool) {
	out = append(dst, '{')
	Members(raw, func(name, value []byte) bool {
		if len(out) > len(dst)+1 {
			out = append(out, ',')
		}
		kept := by(name, value)
		some = some || !bytes.Equal(kept, value)
		out = append(append(AppendString(out, string(name)), ':'), kept...)
		return true
	})
	if !some {
		return append(dst, raw...), false
	}
	return append(out, '}'), true
}

// credentials are parts of the names of headers whose values are credentials (RFC 9110, RFC 6265, and what services use).
var credentials = [...]string{
	"auth", "cookie", "token", "secret", "pass", "credential", "session", "api-key", "apikey", "jwt", "assertion", "otp",
}

// isCredential reports whether a header of that name, in lower case, carries a credential. Keys do, except for those that name a
// request.
func isCredential(name []byte) bool {
	for _, part := range credentials {
		if bytes.Contains(name, []byte(part)) {
			return true
		}
	}
	return bytes.HasSuffix(name, []byte("key")) && !bytes.HasSuffix(name, []byte("idempotency-key"))
}

// shownHeaders is a dictionary of headers without the credentials that are not sealed.
func shownHeaders(value []byte) []byte {
	if value[0] != '{' { // it was refused
		return value
	}
	shown, _ := replace(nil, value, func(name, value []byte) []byte {
		if isCredential(bytes.ToLower(name)) && !sealed(value) {
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
	text, ok := bytes.CutPrefix(Unquote(value), []byte("pwenc:v1:"))
	if !ok {
		return false
	}
	inner, err := base64.RawURLEncoding.AppendDecode(nil, bytes.TrimRight(text, "="))
	return err == nil && bytes.HasPrefix(inner, []byte("{")) && bytes.HasSuffix(inner, []byte("}"))
}

// shownURL is a URL without its user and password. A text that no syscall accepts as a URL loses all that may be one of them; any
// other stays as it was.
func shownURL(value []byte) []byte {
	if value[0] != '"' { // it was refused
		return value
	}
	text := Unquote(value)
	at := bytes.LastIndexByte(text, '@')
	start := behindScheme(text)
	if at < start || start == 0 || harmless(text[start:], string(text[:start])) || string(text[start:at]) == userinfo {
		return value
	}
	return AppendString(nil, string(text[:start])+userinfo+string(text[at:]))
}

// userinfo replaces a user and a password. It is not a valid one.
const userinfo = "[redacted]"

// behindScheme is the index after the scheme of text and its slashes, or 0 if text is a path.
func behindScheme(text []byte) int {
	end := bytes.IndexAny(text, ":/?#") + 1
	if end == 0 || text[end-1] != ':' && !bytes.HasPrefix(text, []byte("//")) {
		return 0
	}
	return len(text) - len(bytes.TrimLeft(text[end:], "/"))
}

// harmless reports whether what follows a scheme begins with a host, with or without a port, or has no host.
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
