package schema

import (
	"path"
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// BlobPointer is the location of data that is too large for a line (MESSAGE 4.3.2), as the parts of a URI.
type BlobPointer struct {
	Scheme    string // file, https or data
	Path      string
	Authority string
	Query     string
	Fragment  string
}

// TextSuffix is the suffix of the names of blobs that have the text of a string. Other blobs have JSON, or the body of an HTTP answer.
const TextSuffix = ".txt"

// Text reports whether the name of the blob has TextSuffix.
func (p BlobPointer) Text() bool { return p.Scheme == "file" && strings.HasSuffix(p.Path, TextSuffix) }

// DecodeBlobPointer decodes one JSON value as a BlobPointer. Unknown members, members that are not strings and
// invalid pointers are InvalidInput errors, which name the member field.
func DecodeBlobPointer(raw []byte, field string) (BlobPointer, *fault.Fault) {
	var p BlobPointer
	if !Valid(raw) || raw[jsontype.SkipSpace(raw, 0)] != '{' {
		return p, jsontype.Invalid(field, "must be an object with a scheme and a path")
	}
	var err *fault.Fault
	jsontype.Members(raw, func(name, value []byte) bool {
		dst := p.member(string(name))
		switch {
		case dst == nil:
			err = jsontype.Invalid(field, "has the unknown member %q", fault.Clip(string(name)))
		case value[0] != '"':
			err = jsontype.Invalid(field+"."+string(name), "must be a string")
		default:
			*dst = string(jsontype.Unquote(value))
		}
		return err == nil
	})
	if err == nil {
		err = p.validate(field)
	}
	return p, err
}

func (p *BlobPointer) member(name string) *string {
	switch name {
	case "scheme":
		return &p.Scheme
	case "path":
		return &p.Path
	case "authority":
		return &p.Authority
	case "query":
		return &p.Query
	case "fragment":
		return &p.Fragment
	}
	return nil
}

// validate checks the requirements of each scheme. Access is checked when the file is read.
func (p *BlobPointer) validate(field string) *fault.Fault {
	if p.Path == "" {
		return jsontype.Invalid(field+".path", "must be a non-empty string")
	}
	if strings.ContainsFunc(p.Path+p.Authority+p.Query+p.Fragment, control) {
		return jsontype.Invalid(field, "must not hold control characters")
	}
	switch p.Scheme {
	case "file":
		if !path.IsAbs(p.Path) || path.Clean(p.Path) != p.Path {
			return jsontype.Invalid(field+".path", "must be an absolute path without . and .. and doubled slashes")
		}
		if p.Authority != "" || p.Query != "" || p.Fragment != "" {
			return jsontype.Invalid(field, "may have only a path if the scheme is file")
		}
	case "https":
		if p.Authority == "" || strings.ContainsAny(p.Authority, "/?#@ \\") {
			return jsontype.Invalid(field+".authority", "must be a host, with or without a port")
		}
		if !path.IsAbs(p.Path) {
			return jsontype.Invalid(field+".path", "must begin with a slash")
		}
	case "data":
		if p.Authority != "" || p.Query != "" || p.Fragment != "" {
			return jsontype.Invalid(field, "may have only a path if the scheme is data")
		}
		if !strings.Contains(p.Path, ",") {
			return jsontype.Invalid(field+".path", "must be of the form [media type][;base64],data")
		}
	default:
		return jsontype.Invalid(field+".scheme", "must be one of file, https, data")
	}
	return nil
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// Append appends p in canonical form: the members in the order of the fields, without empty ones and white space. Two
// pointers are equal if and only if their canonical forms are equal.
func (p *BlobPointer) Append(dst []byte) []byte {
	dst = jsontype.AppendString(append(dst, `{"scheme":`...), p.Scheme)
	dst = appendMember(dst, `,"path":`, p.Path)
	dst = appendMember(dst, `,"authority":`, p.Authority)
	dst = appendMember(dst, `,"query":`, p.Query)
	dst = appendMember(dst, `,"fragment":`, p.Fragment)
	return append(dst, '}')
}
