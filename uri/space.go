package uri

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
)

// MaxLength bounds a name in bytes, as given and in canonical form.
const MaxLength = 2048

// Mount shows another place under a name below root.
type Mount struct {
	Prefix string // such as os:///lib/vendor, never root itself
	Target string // an absolute directory, or an https: address of a directory
}

// Place is the result of resolving a name.
type Place struct {
	// URI is the name in canonical form: os:///…, or https://… if it was an address or is in a mount of one.
	URI string
	// Dir is the directory, root or a mount, that contains the resource; "" if it must be fetched.
	Dir string
	// Name is the path below Dir, decoded, with slashes; it never leads out of Dir. "." is Dir itself.
	Name string
	// Folder reports whether the name ends in a slash, so that it cannot be a file.
	Folder bool
}

// Remote reports whether the resource must be fetched.
func (p Place) Remote() bool { return p.Dir == "" }

// Space is a root with its mounts. It is immutable.
type Space struct {
	mounts []mounted // the longest prefix first; the last is root
}

type mounted struct {
	prefix []string
	dir    string
	web    *web
}

// New returns the space of a root, which is an absolute directory or an https: address, and of mounts. Without a root
// (""), names outside of the mounts are not found.
func New(root string, mounts ...Mount) (*Space, error) {
	s := &Space{}
	if root != "" {
		if err := s.mount(nil, root); err != nil {
			return nil, err
		}
	}
	for _, m := range mounts {
		name, err := parse(m.Prefix)
		if err != nil {
			return nil, err
		}
		if name.web != nil || len(name.path.segments) == 0 {
			return nil, fault.NameInvalid.New("mount at %q: %v", m.Prefix, errScheme)
		}
		if err := s.mount(name.path.segments, m.Target); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.mounts, func(a, b mounted) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return s, nil
}

func (s *Space) mount(prefix []string, target string) error {
	if slices.ContainsFunc(s.mounts, func(m mounted) bool { return slices.Equal(m.prefix, prefix) }) {
		return fault.NameInvalid.New("mount at %q: %v", path{segments: prefix}.uri(), errMounted)
	}
	m := mounted{prefix: prefix}
	if filepath.IsAbs(target) && !strings.ContainsRune(target, 0) {
		m.dir = filepath.Clean(target)
		s.mounts = append(s.mounts, m)
		return nil
	}
	name, err := parse(target)
	if err != nil || name.web == nil || name.web.query != "" {
		return fault.NameInvalid.New("mount %q: %v", target, errTarget)
	}
	name.web.path.dir = true
	m.web = name.web
	s.mounts = append(s.mounts, m)
	return nil
}

// Dirs returns the directories of the space, including root, in no particular order.
func (s *Space) Dirs() []string {
	var dirs []string
	for _, m := range s.mounts {
		if m.dir != "" {
			dirs = append(dirs, m.dir)
		}
	}
	return dirs
}

// Resolve resolves name relative to base, which is itself a name or "". The package comment lists the valid names. The
// error is NameInvalid, at the member uri or base, or NameNotFound.
func (s *Space) Resolve(name, base string) (Place, error) { return s.ResolveMember("uri", name, base) }

// ResolveMember is Resolve for a name that is another member of the request's data.
func (s *Space) ResolveMember(member, name, base string) (Place, error) {
	var beside *target
	if base != "" {
		b, err := read(base, nil)
		if err != nil {
			return Place{}, refuseMember("base", base, err)
		}
		beside = &b
	}
	t, err := read(name, beside)
	if err != nil {
		return Place{}, refuseMember(member, name, err)
	}
	p, ok := s.place(t)
	if !ok {
		return Place{}, refuseMember(member, name, errNoRoot)
	}
	if len(p.URI) > MaxLength {
		return Place{}, refuseMember(member, name, errTooLong)
	}
	return p, nil
}

// place returns the mount that contains t, and whether there is one.
func (s *Space) place(t target) (Place, bool) {
	if t.web != nil {
		return Place{URI: t.web.uri(), Folder: t.web.path.dir}, true
	}
	segments := t.path.segments
	i := slices.IndexFunc(s.mounts, func(m mounted) bool {
		return len(m.prefix) <= len(segments) && slices.Equal(m.prefix, segments[:len(m.prefix)])
	})
	if i < 0 { // the root
		return Place{}, false
	}
	m := &s.mounts[i]
	below := segments[len(m.prefix):]
	if m.web == nil {
		return Place{URI: t.path.uri(), Dir: m.dir, Name: cmp.Or(strings.Join(below, "/"), "."), Folder: t.path.dir}, true
	}
	w := *m.web
	w.path.segments = slices.Clone(w.path.segments)
	for _, name := range below {
		w.path.segments = append(w.path.segments, string(appendEncoded(nil, name)))
	}
	w.path.dir = t.path.dir || len(below) == 0
	return Place{URI: w.uri(), Folder: w.path.dir}, true
}

// target is a parsed name before its mount is known: an https: address or a path below os:///.
type target struct {
	web  *web
	path path
}

// parse parses a name without a base.
func parse(name string) (target, error) {
	t, err := read(name, nil)
	if err != nil {
		return target{}, refuse(name, err)
	}
	return t, nil
}

// read parses a name that may be relative to another.
func read(name string, beside *target) (target, error) {
	switch {
	case name == "":
		return target{}, errEmpty
	case len(name) > MaxLength:
		return target{}, errTooLong
	}
	if beside == nil {
		beside = &target{path: path{dir: true}}
	}
	scheme, rest := splitScheme(name)
	switch scheme {
	case "os":
		below, ok := strings.CutPrefix(rest, "///")
		if !ok {
			return target{}, errScheme
		}
		return down(nil, below)
	case "https":
		w, err := parseWeb(rest)
		return target{web: &w}, err
	case "":
	default:
		return target{}, errScheme
	}
	first, _, _ := strings.Cut(name, "/")
	switch {
	case strings.HasPrefix(name, "//"):
		return target{}, errScheme
	case first == "" && beside.web != nil:
		w, err := beside.web.to(name[1:], nil)
		return target{web: &w}, err
	case first == "":
		return down(nil, name[1:])
	case first != "." && first != "..":
		return down(nil, strings.TrimPrefix(name, "os/"))
	case beside.web != nil:
		w, err := beside.web.to(name, beside.web.path.folder())
		return target{web: &w}, err
	}
	return down(beside.path.folder(), name)
}

func down(from []string, text string) (target, error) {
	p, err := walk(from, text, false, decode)
	return target{path: p}, err
}

// splitScheme returns the scheme in lower case, and the text after its colon.
func splitScheme(name string) (scheme, rest string) {
	i := strings.IndexAny(name, ":/?#")
	if i <= 0 || name[i] != ':' {
		return "", name
	}
	return strings.ToLower(name[:i]), name[i+1:]
}
