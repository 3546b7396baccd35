package uri_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/uri"
)

func space(t testing.TB, mounts ...uri.Mount) *uri.Space {
	t.Helper()
	s, err := uri.New("/srv/root", mounts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestResolve gives each kind of name its meaning.
func TestResolve(t *testing.T) {
	t.Parallel()
	s := space(t)
	for _, c := range []struct{ name, base, want string }{
		{"os:///a/b.md", "", "os:///a/b.md"},
		{"OS:///a", "", "os:///a"},
		{"os:///", "", "os:///"},
		{"os:///a/", "", "os:///a/"},
		{"os/a/b", "", "os:///a/b"},
		{"os/", "", "os:///"},
		{"os", "", "os:///os"},
		{"a/b", "", "os:///a/b"},
		{"a/b", "os:///x/y/z.md", "os:///a/b"},
		{"a/b", "https://h.example/x/y", "os:///a/b"},
		{"README.md", "", "os:///README.md"},
		{"os/os/a", "", "os:///os/a"},
		{"/a/b", "", "os:///a/b"},
		{"/a/b", "os:///x/y", "os:///a/b"},
		{"/a/b", "https://h.example/x/y", "https://h.example/a/b"},
		{"./a", "", "os:///a"},
		{"./a", "os:///x/y.md", "os:///x/a"},
		{"./a", "os:///x/y/", "os:///x/y/a"},
		{"./a", "x/y.md", "os:///x/a"},
		{"../a", "os:///x/y/z.md", "os:///x/a"},
		{"..", "os:///x/y/z.md", "os:///x/"},
		{".", "os:///x/y/z.md", "os:///x/y/"},
		{"./", "os:///x/y", "os:///x/"},
		{"././a/.././b", "os:///x/y", "os:///x/b"},
		{"os:///a/../b", "", "os:///b"},
		{"os:///a/..", "", "os:///"},
		{"a/...", "", "os:///a/..."},
		{".hidden/x", "os:///d/e", "os:///.hidden/x"},
		{"..a/x", "os:///d/e", "os:///..a/x"},
		{"~/x", "", "os:///~/x"},
		{"./a:b", "", "os:///a:b"},
		{"a/b c", "", "os:///a/b%20c"},
		{"a/b%20c", "", "os:///a/b%20c"},
		{"a/%c3%bc", "", "os:///a/%C3%BC"},
		{"a/ü", "", "os:///a/%C3%BC"},
		{"a/u\u0308", "", "os:///a/u%CC%88"},
		{"a/ノート·x", "", "os:///a/%E3%83%8E%E3%83%BC%E3%83%88%C2%B7x"},
		{"a/%3Fx%23", "", "os:///a/%3Fx%23"},
		{"a/%21!", "", "os:///a/!!"},
		{"https://h.example", "", "https://h.example/"},
		{"HTTPS://H.Example:443/A", "", "https://h.example/A"},
		{"https://h.example:8443/a", "", "https://h.example:8443/a"},
		{"https://h.example/a/../b/./c", "", "https://h.example/b/c"},
		{"https://h.example/%61%2f%c3%bc", "", "https://h.example/a%2F%C3%BC"},
		{"https://h.example/a//b", "", "https://h.example/a//b"},
		{"https://h.example/?a/b?c=%7e", "", "https://h.example/?a/b?c=~"},
		{"https://h.example?x", "", "https://h.example/?x"},
		{"https://127.0.0.1/x", "", "https://127.0.0.1/x"},
		{"https://[2001:DB8:0::1]/x", "", "https://[2001:db8::1]/x"},
		{"./b", "https://h.example/a/x?q=/y/", "https://h.example/a/b"},
		{"../b?x=1", "https://h.example/a/c/x", "https://h.example/a/b?x=1"},
		{"os:///b", "https://h.example/a", "os:///b"},
	} {
		p, err := s.Resolve(c.name, c.base)
		if err != nil || p.URI != c.want {
			t.Errorf("%q beside %q is %q, %v, want %q", c.name, c.base, p.URI, err, c.want)
		}
	}
}

// TestResolveRefuses gives each hostile spelling its reason.
func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	s := space(t)
	long := strings.Repeat("a", uri.MaxSegment)
	for _, c := range []struct {
		name, base string
		want       error
	}{
		{"", "", uri.ErrEmpty},
		{"..", "", uri.ErrAboveRoot},
		{"../a", "os:///x", uri.ErrAboveRoot},
		{"../../a", "os:///x/y", uri.ErrAboveRoot},
		{"os:///..", "", uri.ErrAboveRoot},
		{"os:///a/../../a", "", uri.ErrAboveRoot},
		{"a/../../b", "", uri.ErrAboveRoot},
		{"https://h.example/../a", "", uri.ErrAboveRoot},
		{"../../a", "https://h.example/x/y", uri.ErrAboveRoot},
		{"os:/a", "", uri.ErrScheme},
		{"os:a", "", uri.ErrScheme},
		{"os://host/a", "", uri.ErrScheme},
		{"//host/a", "", uri.ErrScheme},
		{"//host/a", "https://h.example/", uri.ErrScheme},
		{"http://h.example/", "", uri.ErrScheme},
		{"file:///etc/passwd", "", uri.ErrScheme},
		{"data:,x", "", uri.ErrScheme},
		{"c:/x", "", uri.ErrScheme},
		{"a:b/c", "", uri.ErrScheme},
		{"https:/h.example/", "", uri.ErrScheme},
		{"https:h.example", "", uri.ErrScheme},
		{"os:////a", "", uri.ErrEmptySegment},
		{"a//b", "", uri.ErrEmptySegment},
		{"os//a", "", uri.ErrEmptySegment},
		{"./a//", "", uri.ErrEmptySegment},
		{"a/%2e%2e/b", "", uri.ErrEncoding},
		{"a/%2e/b", "", uri.ErrEncoding},
		{"a/.%2E/b", "", uri.ErrEncoding},
		{"a%2fb", "", uri.ErrEncoding},
		{"a%5cb", "", uri.ErrEncoding},
		{"a/%252e%252e", "", uri.ErrEncoding},
		{"a/%00", "", uri.ErrEncoding},
		{"a/%7f", "", uri.ErrEncoding},
		{"a/%41", "", uri.ErrEncoding},
		{"a/%", "", uri.ErrEncoding},
		{"a/%4", "", uri.ErrEncoding},
		{"a/%zz", "", uri.ErrEncoding},
		{"a/%u002e", "", uri.ErrEncoding},
		{"a/%ff", "", uri.ErrEncoding},
		{"a/%c0%ae", "", uri.ErrEncoding},
		{"a/\xff", "", uri.ErrEncoding},
		{"https://h.example/%2e%2e/a", "", uri.ErrEncoding},
		{"https://h.example/a/%2E", "", uri.ErrEncoding},
		{"https://h.example/%00", "", uri.ErrEncoding},
		{"https://h.example/%", "", uri.ErrEncoding},
		{"https://h.example/?%g", "", uri.ErrEncoding},
		{"a/\x00", "", uri.ErrCharacter},
		{"a\nb", "", uri.ErrCharacter},
		{`a\b`, "", uri.ErrCharacter},
		{`..\a`, "", uri.ErrCharacter},
		{"a/b?x", "", uri.ErrCharacter},
		{"a/b#x", "", uri.ErrCharacter},
		{"https://h.example/a#x", "", uri.ErrCharacter},
		{`https://h.example/a\b`, "", uri.ErrCharacter},
		{"https://h.example/a b", "", uri.ErrCharacter},
		{"https://h.example/?a b", "", uri.ErrCharacter},
		{"https://h.example/\xff", "", uri.ErrCharacter},
		{"a/ b", "", uri.ErrCharacter},
		{"a /b", "", uri.ErrCharacter},
		{"a/%20", "", uri.ErrCharacter},
		{"a/\uff0e\uff0e/b", "", uri.ErrCharacter},
		{"a\uff0fb", "", uri.ErrCharacter},
		{"a/\u2025/b", "", uri.ErrCharacter},
		{"a\u2215b", "", uri.ErrCharacter},
		{"a\u2044b", "", uri.ErrCharacter},
		{"a\uff3cb", "", uri.ErrCharacter},
		{"a/%ef%bc%8f", "", uri.ErrCharacter},
		{"a/\u2100", "", uri.ErrCharacter},
		{"a/\u2488", "", uri.ErrCharacter},
		{"a/\U0001f100", "", uri.ErrCharacter},
		{"a\uff61b", "", uri.ErrCharacter},
		{"a/x\u202ey", "", uri.ErrCharacter},
		{"a/x\u200by", "", uri.ErrCharacter},
		{"a/x\u2060y", "", uri.ErrCharacter},
		{"a/x\ufe0fy", "", uri.ErrCharacter},
		{"a/x\u3164y", "", uri.ErrCharacter},
		{"a/x\u0085y", "", uri.ErrCharacter},
		{"a/x\u2028y", "", uri.ErrCharacter},
		{"a/x\u00a0y", "", uri.ErrCharacter},
		{"a/x\ue000y", "", uri.ErrCharacter},
		{"https://", "", uri.ErrHost},
		{"https:///a", "", uri.ErrHost},
		{"https://user@h.example/", "", uri.ErrUser},
		{"https://user:secret@h.example/", "", uri.ErrUser},
		{"https://user:sec/secret@h.example/", "", uri.ErrHost},
		{"http://user:secret@h.example/", "", uri.ErrScheme},
		{"https:/user:secret@h.example/", "", uri.ErrScheme},
		{"https:////user:secret@h.example/", "", uri.ErrHost},
		{"//user:secret@h.example/", "", uri.ErrScheme},
		{"user:secret@h.example/", "", uri.ErrScheme},
		{"a", "https://user:secret@h.example/", uri.ErrUser},
		{"https://h.example:/", "", uri.ErrHost},
		{"https://h.example:0/", "", uri.ErrHost},
		{"https://h.example:0443/", "", uri.ErrHost},
		{"https://h.example:65536/", "", uri.ErrHost},
		{"https://h.example./", "", uri.ErrHost},
		{"https://h..example/", "", uri.ErrHost},
		{"https://-h.example/", "", uri.ErrHost},
		{"https://h_x.example/", "", uri.ErrHost},
		{"https://h%2eexample/", "", uri.ErrHost},
		{"https://bücher.example/", "", uri.ErrHost},
		{`https://h.example\@evil.example/`, "", uri.ErrUser},
		{"https://2130706433/", "", uri.ErrHost},
		{"https://127.1/", "", uri.ErrHost},
		{"https://0177.0.0.1/", "", uri.ErrHost},
		{"https://0x7f.0.0.1/", "", uri.ErrHost},
		{"https://127.0.0.0x1/", "", uri.ErrHost},
		{"https://[::1/", "", uri.ErrHost},
		{"https://[fe80::1%25eth0]/", "", uri.ErrHost},
		{"https://[127.0.0.1]/", "", uri.ErrHost},
		{"a/" + long + "a", "", uri.ErrTooLong},
		{"https://h.example/" + strings.Repeat("a", uri.MaxLength), "", uri.ErrTooLong},
		{strings.Repeat("a/", uri.MaxLength/2) + "a", "", uri.ErrTooLong},
		{strings.Repeat("ü/", 600) + "a", "", uri.ErrTooLong},
		{"./a", "http://h.example/", uri.ErrScheme},
		{"./a", "../b", uri.ErrAboveRoot},
	} {
		p, err := s.Resolve(c.name, c.base)
		badBase := false
		if c.base != "" {
			_, alone := s.Resolve(c.base, "")
			badBase = alone != nil
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%q beside %q is %q, %v, want %v", c.name, c.base, p.URI, err, c.want)
		}
		if err != nil && len(err.Error()) > 1024 {
			t.Errorf("the error about %.20q has %d bytes", c.name, len(err.Error()))
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error about %q repeats a password: %v", c.name, err)
		}
		if why, ok := errors.AsType[*uri.NameError](err); ok && why.Base != badBase {
			t.Errorf("%q beside %q: %v is about the base: %v", c.name, c.base, err, why.Base)
		}
	}
	if _, err := s.Resolve("a/"+long, ""); err != nil {
		t.Errorf("the longest segment is refused: %v", err)
	}
}

// TestMounts: the longest prefix wins, segment by segment, and relative names are taken before the mount is looked up.
func TestMounts(t *testing.T) {
	t.Parallel()
	s := space(
		t,
		uri.Mount{Prefix: "os:///lib", Target: "/srv/lib/"},
		uri.Mount{Prefix: "lib/vendor", Target: "/srv/vendor"},
		uri.Mount{Prefix: "os:///net", Target: "https://H.example/v1"},
	)
	for _, c := range []struct {
		name, base string
		want       uri.Place
	}{
		{"a", "", uri.Place{URI: "os:///a", Dir: "/srv/root", Name: "a"}},
		{"os:///", "", uri.Place{URI: "os:///", Dir: "/srv/root", Name: ".", Folder: true}},
		{"lib/x", "", uri.Place{URI: "os:///lib/x", Dir: "/srv/lib", Name: "x"}},
		{"library/x", "", uri.Place{URI: "os:///library/x", Dir: "/srv/root", Name: "library/x"}},
		{"lib", "", uri.Place{URI: "os:///lib", Dir: "/srv/lib", Name: "."}},
		{"lib/vendor/x/y%20z", "", uri.Place{URI: "os:///lib/vendor/x/y%20z", Dir: "/srv/vendor", Name: "x/y z"}},
		{"../x", "lib/vendor/y", uri.Place{URI: "os:///lib/x", Dir: "/srv/lib", Name: "x"}},
		{"net/x y", "", uri.Place{URI: "https://h.example/v1/x%20y"}},
		{"net", "", uri.Place{URI: "https://h.example/v1/", Folder: true}},
		{"../x", "net/y", uri.Place{URI: "os:///x", Dir: "/srv/root", Name: "x"}},
		{"./x", "net/y/z", uri.Place{URI: "https://h.example/v1/y/x"}},
	} {
		got, err := s.Resolve(c.name, c.base)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%q beside %q: %v\n%s", c.name, c.base, err, diff)
		}
		if got.Remote() != (c.want.Dir == "") {
			t.Errorf("%q: remote is %v", c.name, got.Remote())
		}
	}
}

// TestNewRefuses: a root or mount that means nothing is found when the space is made.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		root   string
		mounts []uri.Mount
		want   error
	}{
		{"srv/root", nil, uri.ErrTarget},
		{"http://h.example/", nil, uri.ErrTarget},
		{"https://h.example/?x", nil, uri.ErrTarget},
		{"/srv/\x00", nil, uri.ErrTarget},
		{"/r", []uri.Mount{{Prefix: "a", Target: "b"}}, uri.ErrTarget},
		{"/r", []uri.Mount{{Prefix: "os:///", Target: "/b"}}, uri.ErrScheme},
		{"/r", []uri.Mount{{Prefix: "https://h.example/", Target: "/b"}}, uri.ErrScheme},
		{"/r", []uri.Mount{{Prefix: "../a", Target: "/b"}}, uri.ErrAboveRoot},
		{"/r", []uri.Mount{{Prefix: "a", Target: "/b"}, {Prefix: "os/a/", Target: "/c"}}, uri.ErrMounted},
	} {
		if _, err := uri.New(c.root, c.mounts...); !errors.Is(err, c.want) {
			t.Errorf("root %q with %v: %v, want %v", c.root, c.mounts, err, c.want)
		}
	}
	s, err := uri.New("https://h.example/promptware")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Resolve("a/b", ""); err != nil || p.URI != "https://h.example/promptware/a/b" || len(s.Dirs()) != 0 {
		t.Errorf("below a root on the web: %v, %v, %v", p, err, s.Dirs())
	}
}

// TestNoRoot: without a root, what no mount holds means nothing, and all else what it would.
func TestNoRoot(t *testing.T) {
	t.Parallel()
	s, err := uri.New("", uri.Mount{Prefix: "os:///lib", Target: "/srv/lib"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lib/x": "os:///lib/x", "https://h.example/a": "https://h.example/a", "./lib": "os:///lib"} {
		if p, err := s.Resolve(name, ""); err != nil || p.URI != want {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, name := range []string{"os:///", "os:///x", "libx", "lib/../x", "./x"} {
		if p, err := s.Resolve(name, ""); !errors.Is(err, uri.ErrNoRoot) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if dirs := s.Dirs(); len(dirs) != 1 || dirs[0] != "/srv/lib" {
		t.Errorf("directories %v", dirs)
	}
}
