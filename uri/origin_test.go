package uri_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// TestOrigin tests the rule of ABI 6.2.
func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ origin, root, want string }{
		{"", "https://root.example/os", "https://root.example/os"},
		{"", "/srv/root", "/srv/root"},
		{"https://my-os.local/", "/r", "https://my-os.local/"},
		{"https://My-OS.local", "/r", "https://My-OS.local"},
		{"http://localhost:8080/x", "/r", "http://localhost:8080/x"},
		{"file:///srv/os", "/r", "file:///srv/os"},
		{"my-os", "/r", "https://my-os.local/"},
		{"My OS!", "/r", "https://myos.local/"},
		{"my_os.v2", "/r", "https://myosv2.local/"},
		{"team:dev", "/r", "https://teamdev.local/"},
		{"/srv/root", "/r", "https://srvroot.local/"},
		{"Straße", "/r", "https://strae.local/"},
		{"https://", "/r", "https://https.local/"},
		{"https://a b/", "/r", "https://httpsab.local/"},
	} {
		if got, err := uri.Origin(c.origin, c.root); err != nil || got != c.want {
			t.Errorf("origin %q is %q, %v, want %q", c.origin, got, err, c.want)
		}
	}
	for _, name := range []string{"!!!", "-", " ", "ü"} {
		if got, err := uri.Origin(name, "/r"); !errors.Is(err, fault.NameInvalid) {
			t.Errorf("origin %q is %q, %v", name, got, err)
		}
	}
}

// TestOriginIsSettled: a normalized origin does not change if it is normalized again, and a name becomes only a host.
func TestOriginIsSettled(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		origin := rapid.String().Draw(t, "origin")
		first, err := uri.Origin(origin, "/r")
		if err != nil || origin == "" {
			return
		}
		if again, err := uri.Origin(first, "/r"); err != nil || again != first {
			t.Fatalf("%q, then %q, %v", first, again, err)
		}
		if first != origin && strings.ContainsAny(strings.TrimSuffix(strings.TrimPrefix(first, "https://"), ".local/"), "/:@.?#") {
			t.Fatalf("%q became %q", origin, first)
		}
	})
}
