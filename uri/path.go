package uri

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxSegment bounds one decoded segment of an os: name, in bytes, as file systems do.
const MaxSegment = 255

// path is a sequence of names below a root, none empty or a dot segment.
type path struct {
	segments []string
	dir      bool // it ends in a slash, or is the root itself
}

// walk resolves the segments of a reference without changing the slice. read decodes each segment that is not a dot
// segment.
func walk(from []string, text string, empty bool, read func(string) (string, error)) (path, error) {
	p := path{segments: slices.Clone(from), dir: true}
	if text == "" {
		return p, nil
	}
	parts := strings.Split(text, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "" && last, part == ".":
			p.dir = true
		case part == "" && !empty:
			return path{}, errEmptySegment
		case part == "..":
			if len(p.segments) == 0 {
				return path{}, errAboveRoot
			}
			p.segments = p.segments[:len(p.segments)-1]
			p.dir = true
		default:
			name, err := read(part)
			if err != nil {
				return path{}, err
			}
			p.segments = append(p.segments, name)
			p.dir = false
		}
	}
	return p, nil
}

// folder returns the segments of the directory that a reference relative to p starts from.
func (p path) folder() []string {
	if p.dir || len(p.segments) == 0 {
		return p.segments
	}
	return p.segments[:len(p.segments)-1]
}

// decode decodes one segment of an os: name.
func decode(segment string) (string, error) {
	if strings.ContainsAny(segment, "?#") {
		return "", errCharacter
	}
	var b strings.Builder
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		if c == '%' {
			var ok bool
			if c, ok = hex(segment[i+1:]); !ok || plain(c) || c < ' ' || strings.IndexByte("/\\%\x7f", c) >= 0 {
				return "", errEncoding
			}
			i += 2
		}
		b.WriteByte(c)
	}
	name := b.String()
	switch {
	case !utf8.ValidString(name):
		return "", errEncoding
	case !readable(name), name[0] == ' ', name[len(name)-1] == ' ':
		return "", errCharacter
	case len(name) > MaxSegment:
		return "", errTooLong
	}
	return name, nil
}

// uri returns the canonical os: name of p.
func (p path) uri() string {
	out := []byte("os://")
	for _, s := range p.segments {
		out = appendEncoded(append(out, '/'), s)
	}
	if p.dir {
		out = append(out, '/')
	}
	return string(out)
}
