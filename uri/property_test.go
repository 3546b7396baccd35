package uri_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/uri"
)

// names generates references from parts that are significant to a parser.
func names() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{
		"/", "/", "/", ".", "..", "a", "b", "lib", "net", "os", "os:", "https:", "h.example", ":", "%2e", "%2f", "%20", "%", "?", "#", "\\",
		"\x00", "ü", "\uff0e", " ", "@", "443", "[::1]", "//", "./", "../",
	})
	return rapid.Map(rapid.SliceOfN(part, 0, 12), func(parts []string) string { return strings.Join(parts, "") })
}

// sound fails the test unless p is a possible place of name: below its directory, with one spelling, and stable.
func sound(t testing.TB, s *uri.Space, name, base string) {
	t.Helper()
	p, err := s.Resolve(name, base)
	if err != nil {
		if p != (uri.Place{}) {
			t.Fatalf("%q beside %q: %+v came with %v", name, base, p, err)
		}
		return
	}
	if len(p.URI) > uri.MaxLength || strings.Contains(p.URI, "/../") || strings.Contains(p.URI, "/./") {
		t.Fatalf("%q beside %q is %q", name, base, p.URI)
	}
	u, err := url.Parse(p.URI)
	if err != nil || u.User != nil || u.Fragment != "" {
		t.Fatalf("%q beside %q is %q, which another reader takes for %+v, %v", name, base, p.URI, u, err)
	}
	switch {
	case p.Remote():
		if u.Scheme != "https" || u.Hostname() == "" || p.Name != "" {
			t.Fatalf("%q beside %q is %+v", name, base, p)
		}
	case !filepath.IsLocal(p.Name) || strings.ContainsAny(p.Name, "\x00\\") || u.Scheme != "os" || u.Host != "" || u.RawQuery != "":
		t.Fatalf("%q beside %q lies at %q, as %q", name, base, p.Name, p.URI)
	case !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix("/"+p.Name, "/.")):
		t.Fatalf("%q beside %q lies at %q, but its URI has the path %q", name, base, p.Name, u.Path)
	}
	again, err := s.Resolve(p.URI, base)
	if err != nil || again != p {
		t.Fatalf("%q beside %q is %+v, and that is %+v, %v", name, base, p, again, err)
	}
}

// TestResolveIsSettled: the result of Resolve is local and canonical, and resolves to itself, for any name and base.
func TestResolveIsSettled(t *testing.T) {
	t.Parallel()
	s := space(t, uri.Mount{Prefix: "lib", Target: "/srv/lib"}, uri.Mount{Prefix: "net", Target: "https://h.example/v1"})
	rapid.Check(t, func(r *rapid.T) {
		sound(r2t{r, t}, s, names().Draw(r, "name"), names().Draw(r, "base"))
	})
}

// r2t lets a helper for testing.TB report to a property.
type r2t struct {
	r *rapid.T
	testing.TB
}

func (t r2t) Helper()                      {}
func (t r2t) Fatalf(f string, args ...any) { t.r.Fatalf(f, args...) }

// TestRelativeStaysBeside: a name of plain segments, relative to a base, is in the base's directory.
func TestRelativeStaysBeside(t *testing.T) {
	t.Parallel()
	s := space(t)
	segment := rapid.StringMatching(`[a-z0-9_-]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SliceOfN(segment, 1, 6).Draw(t, "base")
		name := rapid.SliceOfN(segment, 1, 6).Draw(t, "name")
		up := rapid.IntRange(0, 7).Draw(t, "up")
		p, err := s.Resolve("./"+strings.Repeat("../", up)+strings.Join(name, "/"), "os:///"+strings.Join(base, "/"))
		if up > len(base)-1 {
			if err == nil {
				t.Fatalf("%d up from %v is %q", up, base, p.URI)
			}
			return
		}
		want := "os:///" + strings.Join(append(base[:len(base)-1-up:len(base)-1-up], name...), "/")
		if err != nil || p.URI != want {
			t.Fatalf("%q, %v, want %q", p.URI, err, want)
		}
	})
}

// FuzzResolve searches for a name that resolves to a forbidden place.
func FuzzResolve(f *testing.F) {
	for _, seed := range [][2]string{
		{"os:///a/b", ""},
		{"../a", "os:///x/y/z"},
		{"https://h.example:443/%61/?q", "a"},
		{"lib/x%20y", "https://h.example/"},
		{"/a/..//b", "net/c"},
		{"a/%c3%bc", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	s := space(f, uri.Mount{Prefix: "lib", Target: "/srv/lib"}, uri.Mount{Prefix: "net", Target: "https://h.example/v1"})
	f.Fuzz(func(t *testing.T, name, base string) { sound(t, s, name, base) })
}
