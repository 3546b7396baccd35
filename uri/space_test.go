package uri_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// Texts of refusals, one for each rule.
const (
	empty        = "the name is empty"
	scheme       = "only os:///… and https://… can be named, or a path"
	aboveRoot    = "the name leads above root"
	encoding     = "a percent-encoding is broken, or stands for what must be written plainly or not at all"
	character    = "a character cannot stand in a name"
	emptySegment = "a segment of the path is empty"
	host         = "the host is no DNS name and no IP address in canonical form"
	user         = "an address holds no user and no password"
	tooLong      = "the name or a segment of it is too long"
	badTarget    = "root, or what is mounted, must be an absolute directory or an https: address"
	mountedTwice = "two mounts have the same prefix"
)

// refused reports whether err refuses a name for the reason.
func refused(err error, why string) bool {
	return errors.Is(err, fault.NameInvalid) && strings.HasSuffix(err.Error(), ": "+why)
}

func space(t testing.TB, mounts ...uri.Mount) *uri.Space {
	t.Helper()
	s, err := uri.New("/srv/root", mounts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestResolve resolves each form of a name.
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

// TestResolveRefuses refuses invalid and hostile spellings, each with its reason.
func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	s := space(t)
	long := strings.Repeat("a", uri.MaxSegment)
	for _, c := range []struct {
		name, base string
		want       string
	}{
		{"", "", empty},
		{"..", "", aboveRoot},
		{"../a", "os:///x", aboveRoot},
		{"../../a", "os:///x/y", aboveRoot},
		{"os:///..", "", aboveRoot},
		{"os:///a/../../a", "", aboveRoot},
		{"a/../../b", "", aboveRoot},
		{"https://h.example/../a", "", aboveRoot},
		{"../../a", "https://h.example/x/y", aboveRoot},
		{"os:/a", "", scheme},
		{"os:a", "", scheme},
		{"os://host/a", "", scheme},
		{"//host/a", "", scheme},
		{"//host/a", "https://h.example/", scheme},
		{"http://h.example/", "", scheme},
		{"file:///etc/passwd", "", scheme},
		{"data:,x", "", scheme},
		{"c:/x", "", scheme},
		{"a:b/c", "", scheme},
		{"https:/h.example/", "", scheme},
		{"https:h.example", "", scheme},
		{"os:////a", "", emptySegment},
		{"a//b", "", emptySegment},
		{"os//a", "", emptySegment},
		{"./a//", "", emptySegment},
		{"a/%2e%2e/b", "", encoding},
		{"a/%2e/b", "", encoding},
		{"a/.%2E/b", "", encoding},
		{"a%2fb", "", encoding},
		{"a%5cb", "", encoding},
		{"a/%252e%252e", "", encoding},
		{"a/%00", "", encoding},
		{"a/%7f", "", encoding},
		{"a/%41", "", encoding},
		{"a/%", "", encoding},
		{"a/%4", "", encoding},
		{"a/%zz", "", encoding},
		{"a/%u002e", "", encoding},
		{"a/%ff", "", encoding},
		{"a/%c0%ae", "", encoding},
		{"a/\xff", "", encoding},
		{"https://h.example/%2e%2e/a", "", encoding},
		{"https://h.example/a/%2E", "", encoding},
		{"https://h.example/%00", "", encoding},
		{"https://h.example/%", "", encoding},
		{"https://h.example/?%g", "", encoding},
		{"a/\x00", "", character},
		{"a\nb", "", character},
		{`a\b`, "", character},
		{`..\a`, "", character},
		{"a/b?x", "", character},
		{"a/b#x", "", character},
		{"https://h.example/a#x", "", character},
		{`https://h.example/a\b`, "", character},
		{"https://h.example/a b", "", character},
		{"https://h.example/?a b", "", character},
		{"https://h.example/\xff", "", character},
		{"a/ b", "", character},
		{"a /b", "", character},
		{"a/%20", "", character},
		{"a/\uff0e\uff0e/b", "", character},
		{"a\uff0fb", "", character},
		{"a/\u2025/b", "", character},
		{"a\u2215b", "", character},
		{"a\u2044b", "", character},
		{"a\uff3cb", "", character},
		{"a/%ef%bc%8f", "", character},
		{"a/\u2100", "", character},
		{"a/\u2488", "", character},
		{"a/\U0001f100", "", character},
		{"a\uff61b", "", character},
		{"a/x\u202ey", "", character},
		{"a/x\u200by", "", character},
		{"a/x\u2060y", "", character},
		{"a/x\ufe0fy", "", character},
		{"a/x\u3164y", "", character},
		{"a/x\u0085y", "", character},
		{"a/x\u2028y", "", character},
		{"a/x\u00a0y", "", character},
		{"a/x\ue000y", "", character},
		{"https://", "", host},
		{"https:///a", "", host},
		{"https://user@h.example/", "", user},
		{"https://user:secret@h.example/", "", user},
		{"https://user:sec/secret@h.example/", "", host},
		{"http://user:secret@h.example/", "", scheme},
		{"https:/user:secret@h.example/", "", scheme},
		{"https:////user:secret@h.example/", "", host},
		{"//user:secret@h.example/", "", scheme},
		{"user:secret@h.example/", "", scheme},
		{"a", "https://user:secret@h.example/", user},
		{"https://h.example:/", "", host},
		{"https://h.example:0/", "", host},
		{"https://h.example:0443/", "", host},
		{"https://h.example:65536/", "", host},
		{"https://h.example./", "", host},
		{"https://h..example/", "", host},
		{"https://-h.example/", "", host},
		{"https://h_x.example/", "", host},
		{"https://h%2eexample/", "", host},
		{"https://bücher.example/", "", host},
		{`https://h.example\@evil.example/`, "", user},
		{"https://2130706433/", "", host},
		{"https://127.1/", "", host},
		{"https://0177.0.0.1/", "", host},
		{"https://0x7f.0.0.1/", "", host},
		{"https://127.0.0.0x1/", "", host},
		{"https://[::1/", "", host},
		{"https://[fe80::1%25eth0]/", "", host},
		{"https://[127.0.0.1]/", "", host},
		{"a/" + long + "a", "", tooLong},
		{"https://h.example/" + strings.Repeat("a", uri.MaxLength), "", tooLong},
		{strings.Repeat("a/", uri.MaxLength/2) + "a", "", tooLong},
		{strings.Repeat("ü/", 600) + "a", "", tooLong},
		{"./a", "http://h.example/", scheme},
		{"./a", "../b", aboveRoot},
	} {
		p, err := s.Resolve(c.name, c.base)
		badBase := false
		if c.base != "" {
			_, alone := s.Resolve(c.base, "")
			badBase = alone != nil
		}
		if !refused(err, c.want) {
			t.Errorf("%q beside %q is %q, %v, want %v", c.name, c.base, p.URI, err, c.want)
		}
		if err != nil && len(err.Error()) > 1024 {
			t.Errorf("the error about %.20q has %d bytes", c.name, len(err.Error()))
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error about %q repeats a password: %v", c.name, err)
		}
		if field := fault.Of(err).Field; (field == "base") != badBase || !badBase && field != "uri" {
			t.Errorf("%q beside %q: %v is about the member %q", c.name, c.base, err, field)
		}
	}
	if _, err := s.Resolve("a/"+long, ""); err != nil {
		t.Errorf("the longest segment is refused: %v", err)
	}
}

// TestMounts: the longest prefix is used, segment by segment, and relative names are resolved before mounts are looked up.
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

// TestNewRefuses: New refuses an invalid root or mount.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		root   string
		mounts []uri.Mount
		want   string
	}{
		{"srv/root", nil, badTarget},
		{"http://h.example/", nil, badTarget},
		{"https://h.example/?x", nil, badTarget},
		{"/srv/\x00", nil, badTarget},
		{"/r", []uri.Mount{{Prefix: "a", Target: "b"}}, badTarget},
		{"/r", []uri.Mount{{Prefix: "os:///", Target: "/b"}}, scheme},
		{"/r", []uri.Mount{{Prefix: "https://h.example/", Target: "/b"}}, scheme},
		{"/r", []uri.Mount{{Prefix: "../a", Target: "/b"}}, aboveRoot},
		{"/r", []uri.Mount{{Prefix: "a", Target: "/b"}, {Prefix: "os/a/", Target: "/c"}}, mountedTwice},
	} {
		if _, err := uri.New(c.root, c.mounts...); !refused(err, c.want) {
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

// TestNoRoot: without a root, names outside of all mounts are not found, and others resolve as with one.
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
		if p, err := s.Resolve(name, ""); !errors.Is(err, fault.NameNotFound) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if dirs := s.Dirs(); len(dirs) != 1 || dirs[0] != "/srv/lib" {
		t.Errorf("directories %v", dirs)
	}
}
