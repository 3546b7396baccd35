package jsontype

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema/secret"
)

// Confidential is implemented by data with members tagged `keep:"applied"`. If it reports false, the journal keeps these members
// of a failed call too.
type Confidential interface {
	Confidential() bool
}

// redacted is the value of a withheld member.
const redacted = `"[redacted]"`

// Redact returns data with the values of withheld members replaced, as the journal may contain it. in is the decoded data, and
// failed reports whether the call failed. If nothing is withheld, Redact returns data itself. A second Redact changes
// nothing.
func (t *Type) Redact(data []byte, in any, failed bool) []byte {
	mode := modeOf(in, failed)
	if !t.changes[mode] || len(data) == 0 || string(data) == "null" {
		return data
	}
	return t.redactValue(data, mode)
}

// Withholds reports whether Redact withholds all of a member, so that the record does not show the whole call.
func (t *Type) Withholds(in any, failed bool) bool { return t.omits[modeOf(in, failed)] }

// Undecided returns the members without a tag `keep`, nested ones included.
func (t *Type) Undecided() []string {
	return t.membersThat("", func(f *field) bool { return f.keep == undecided })
}

// Withheld returns the members, nested ones included, that are not kept entirely even if the call succeeded. A command
// must not have any that a replay needs.
func (t *Type) Withheld() []string {
	return t.membersThat("", func(f *field) bool { return f.withheld(false) || f.filter != nil })
}

// membersThat returns the paths of the members for which is returns true.
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

// withholding computes t.changes and t.omits.
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

// redactValue returns a value of t as the journal may contain it. It withholds a value of another shape.
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

// redactArray returns the array with redacted elements, or unchanged if no element changes.
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

// replace appends the object raw with the values that by returns, and reports whether one differs. If none does, it appends raw.
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

// credentials has parts of the names of headers with credentials (RFC 9110, RFC 6265, and common services).
var credentials = [...]string{
	"auth", "cookie", "token", "secret", "pass", "credential", "session", "api-key", "apikey", "jwt", "assertion", "otp",
}

// isCredential reports whether a header with a name, in lower case, has a credential. Headers with a key are credentials, except
// those that identify a request.
func isCredential(name []byte) bool {
	for _, part := range credentials {
		if bytes.Contains(name, []byte(part)) {
			return true
		}
	}
	return bytes.HasSuffix(name, []byte("key")) && !bytes.HasSuffix(name, []byte("idempotency-key"))
}

// shownHeaders returns a dictionary of headers without credentials that are not sealed.
func shownHeaders(value []byte) []byte {
	if value[0] != '{' { // invalid: the call was refused
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

// sealed reports whether a JSON string has the form of a sealed value.
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

// keptArguments bounds what is kept of the arguments of a program.
const keptArguments = 4 << 10

// shownArguments returns an array with the arguments of a program without what looks secret. A long one ends with an ellipsis.
func shownArguments(value []byte) []byte {
	var args []string
	valid := value[0] == '['
	if valid {
		Elements(value, func(elem []byte) bool {
			if valid = elem[0] == '"'; valid {
				args = append(args, string(Unquote(elem)))
			}
			return valid
		})
	}
	if !valid { // the call was refused
		return []byte(redacted)
	}
	const more = "…"
	shown, cut := secret.Arguments(args, keptArguments)
	if cut {
		shown, _ = secret.Arguments(args, keptArguments-secret.PerArgument-len(more))
		shown = append(shown, more)
	}
	if slices.Equal(shown, args) {
		return value
	}
	out := []byte{'['}
	for i, arg := range shown {
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendString(out, arg)
	}
	return append(out, ']')
}

// shownURL returns a URL without its user and password. From a text that no syscall accepts as a URL, it removes everything that may be
// a user or password. Any other text is unchanged.
func shownURL(value []byte) []byte {
	if value[0] != '"' { // invalid: the call was refused
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

// userinfo replaces a user and password. It is not valid as one.
const userinfo = "[redacted]"

// behindScheme returns the index after the scheme of text and its slashes, or 0 if text is a path.
func behindScheme(text []byte) int {
	end := bytes.IndexAny(text, ":/?#") + 1
	if end == 0 || text[end-1] != ':' && !bytes.HasPrefix(text, []byte("//")) {
		return 0
	}
	return len(text) - len(bytes.TrimLeft(text[end:], "/"))
}

// harmless reports whether the rest of a URL after its scheme begins with a host and an optional port, or has no host.
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
