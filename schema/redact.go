package schema

// Confidential is implemented by the data of a syscall that has fields tagged `secret:"failed"`, to say which calls they
// are about.
type Confidential interface {
	Confidential() bool
}

// Redact returns data, which Decode has accepted as in, without its secrets: members whose field is tagged `secret` keep
// their place and lose their value. failed says that the call came to nothing. Without secrets it is data itself.
func (t *Type) Redact(data []byte, in any, failed bool) []byte {
	hidden := t.hidden(in, failed)
	if t.secret < hidden || len(data) == 0 || data[0] != '{' {
		return data
	}
	out := []byte{'{'}
	members(data, func(name, value []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendString(out, string(name)), ':')
		if i := t.find(name); i >= 0 && t.fields[i].secret >= hidden {
			out = append(out, `"[redacted]"`...)
		} else {
			out = append(out, value...)
		}
		return true
	})
	return append(out, '}')
}

// Redacts reports whether Redact takes something out.
func (t *Type) Redacts(in any, failed bool) bool { return t.secret >= t.hidden(in, failed) }

// hidden is the secrecy from which on a value is left out.
func (t *Type) hidden(in any, failed bool) secrecy {
	if c, ok := in.(Confidential); failed && ok && c.Confidential() {
		return secretIfFailed
	}
	return secretAlways
}
