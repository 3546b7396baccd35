package schema

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Referring is the data of a syscall that accepts one large member by reference (PROTOCOL 5).
type Referring interface {
	// Reference returns the name of the member, whether the member is present, and the reference
	// that is present instead, or nil.
	Reference() (member string, given bool, ref *BlobRef)
}

// refSuffix added to a member's name gives the name of its reference.
const refSuffix = "Ref"

// Missing is the fault of data with neither a member nor its reference, nil if there is one.
func Missing(in Referring) *fault.Fault {
	member, given, ref := in.Reference()
	switch {
	case given && ref != nil:
		return jsontype.Invalid(member+refSuffix, "replaces %s: send one of the two", member)
	case !given && ref == nil:
		return jsontype.Invalid(member, "is missing")
	case ref != nil:
		return ref.Valid(member + refSuffix)
	}
	return nil
}

// Inline returns data, an object, with content in place of the reference to member. content is one JSON value, or the text of a
// string if text is true or if it is not JSON and does not begin like an object or an array.
func Inline(data []byte, member string, content []byte, text bool) ([]byte, *fault.Fault) {
	content, err := OneLine(member, content, text)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(data)+len(content))
	out = append(out, '{')
	jsontype.Members(data, func(name, value []byte) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if string(name) == member+refSuffix {
			name, value = []byte(member), content
		}
		out = append(append(jsontype.AppendString(out, string(name)), ':'), value...)
		return true
	})
	out = append(out, '}')
	if !Valid(slices.Concat([]byte(`{"data":`), out, []byte{'}'})) { // nested as in the journal
		return nil, jsontype.Invalid(member+refSuffix, "refers to a value that is nested too deep")
	}
	return out, nil
}

// OneLine returns content as a JSON value on one line. See Inline.
func OneLine(member string, content []byte, text bool) ([]byte, *fault.Fault) {
	value := bytes.TrimSpace(content)
	switch {
	case !text && Valid(value):
		return spaced(value), nil
	case !text && len(value) > 0 && (value[0] == '{' || value[0] == '['), !utf8.Valid(content):
		return nil, jsontype.Invalid(member+refSuffix, "refers to what is neither one JSON value nor a text in UTF-8")
	}
	return jsontype.AppendString(nil, string(content)), nil
}

// spaced replaces line breaks by spaces. In valid JSON they are only between tokens.
func spaced(value []byte) []byte {
	if !bytes.ContainsAny(value, "\r\n") {
		return value
	}
	value = bytes.Clone(value)
	for i, c := range value {
		if c == '\n' || c == '\r' {
			value[i] = ' '
		}
	}
	return value
}

// WholeRef is the member name in Refs of a reference to the whole data of a reply. The data then has only
// the reference.
const WholeRef = "*"

// wholeMember is the member of the data with the reference to the whole data.
const wholeMember = "valueRef"

// Refer stores the largest members of a reply's data, of type t, with put until the rest has at most room bytes. It returns the rest
// with references in place of the stored members, and the references for the reply's metadata: an object of member names, with
// `text` for the text of a string and `json` for a JSON value. Data that is not an object of known members is stored
// as a whole. The error is that of put, or that the data cannot be shortened enough.
func Refer(t *Type, data []byte, room int, put func(content []byte, text bool) (BlobPointer, error)) (short, refs []byte, err error) {
	if t.Anything() || len(data) == 0 || data[0] != '{' {
		p, kind, err := referValue(data, put)
		if err != nil {
			return nil, nil, err
		}
		short = append(p.Append([]byte(`{"`+wholeMember+`":`)), '}')
		return short, []byte(`{"` + WholeRef + `":"` + kind + `"}`), nil
	}
	type part struct {
		name, value []byte
		kind        string // empty: not stored
	}
	var parts []*part
	jsontype.Members(data, func(name, value []byte) bool {
		parts = append(parts, &part{name: name, value: value})
		return true
	})
	bySize := slices.Clone(parts)
	slices.SortStableFunc(bySize, func(a, b *part) int { return len(b.value) - len(a.value) })
	refs = []byte{'{'}
	size := len(data)
	for _, p := range bySize {
		const most = 256 // shorter values are not stored in a file
		if size <= room || len(p.value) <= most {
			break
		}
		at, kind, err := referValue(p.value, put)
		if err != nil {
			return nil, nil, err
		}
		size -= len(p.value)
		p.kind, p.value = kind, at.Append(nil)
		size += len(p.value) + len(refSuffix)
		if len(refs) > 1 {
			refs = append(refs, ',')
		}
		refs = append(jsontype.AppendString(refs, string(p.name)), `:"`+kind+`"`...)
	}
	if size > room {
		return nil, nil, fault.WireAnswerTooLong.New("the answer does not fit a line: ask for less")
	}
	short = []byte{'{'}
	for _, p := range parts {
		name := string(p.name)
		if p.kind != "" {
			name += refSuffix
		}
		if len(short) > 1 {
			short = append(short, ',')
		}
		short = append(append(jsontype.AppendString(short, name), ':'), p.value...)
	}
	return append(short, '}'), append(refs, '}'), nil
}

// referValue stores one value with put, and returns its location and kind.
func referValue(value []byte, put func(content []byte, text bool) (BlobPointer, error)) (p BlobPointer, kind string, err error) {
	kind = "json"
	if len(value) > 0 && value[0] == '"' {
		kind, value = "text", jsontype.Unquote(value)
	}
	p, err = put(value, kind == "text")
	return p, kind, err
}

// Resolve reverses Refer: it returns a reply's data with the values that get returns in place of the references in refs and of those
// that are text according to t. A reference that get cannot read, or whose value is not valid, is unchanged.
func Resolve(t *Type, data, refs []byte, get func(BlobPointer) ([]byte, error)) []byte {
	kinds := make(map[string]string)
	if Valid(refs) && refs[0] == '{' {
		jsontype.Members(refs, func(name, value []byte) bool {
			kinds[string(name)] = strings.Trim(string(value), `"`)
			return true
		})
	}
	if len(data) == 0 || data[0] != '{' {
		return data
	}
	out, some := []byte{'{'}, false
	var whole []byte
	jsontype.Members(data, func(name, value []byte) bool {
		member, isRef := strings.CutSuffix(string(name), refSuffix)
		kind := kinds[member]
		switch all := kinds[WholeRef]; {
		case all != "" && string(name) == wholeMember:
			kind = all
		case kind == "" && t != nil && t.HasText(member):
			kind = "text"
		}
		written := string(name)
		if isRef && kind != "" {
			if content := resolveRef(value, kind, get); content != nil {
				written, value, some = member, content, true
				if kinds[WholeRef] != "" {
					whole = content
				}
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsontype.AppendString(out, written), ':'), value...)
		return true
	})
	switch {
	case whole != nil:
		return whole
	case !some:
		return data
	}
	return append(out, '}')
}

// resolveRef returns the value of a reference, nil if it cannot be read.
func resolveRef(ref []byte, kind string, get func(BlobPointer) ([]byte, error)) []byte {
	p, failure := DecodeBlobPointer(ref, refSuffix)
	if failure != nil {
		return nil
	}
	content, err := get(p)
	switch {
	case err != nil:
		return nil
	case kind == "text":
		if quoted := jsontype.AppendString(nil, string(content)); string(jsontype.Unquote(quoted)) == string(content) {
			return quoted
		}
		return nil
	case !Valid(content):
		return nil
	}
	return content
}
