package schema

// Redact returns data, which Decode has accepted, without its secrets: members whose field is tagged `secret` keep their
// place and lose their value. Without secrets in the type it is data itself.
func (t *Type) Redact(data []byte) []byte {
	if !t.secret || len(data) == 0 || data[0] != '{' {
		return data
	}
	out := []byte{'{'}
	members(data, func(name, value []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendString(out, string(name)), ':')
		if i := t.find(name); i >= 0 && t.fields[i].secret {
			out = append(out, `"[redacted]"`...)
		} else {
			out = append(out, value...)
		}
		return true
	})
	return append(out, '}')
}
