package hosts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestLock: the hosts that CI installs have one version, which is that of the lock file, and the one that pwos says it was tried with.
func TestLock(t *testing.T) {
	t.Parallel()
	type packages struct{ Dependencies, OptionalDependencies map[string]string }
	read := func(name string, into any) {
		testkit.Must(t, json.Unmarshal([]byte(testkit.ReadFile(t, name)), into))
	}
	var named packages
	var lock struct {
		Packages map[string]struct{ Version, Integrity, Resolved string }
	}
	read("npm/package.json", &named)
	read("npm/package-lock.json", &lock)
	maps.Copy(named.Dependencies, named.OptionalDependencies)
	for name, version := range named.Dependencies {
		if got := lock.Packages["node_modules/"+name].Version; got != version {
			t.Errorf("%s is %q in package.json, and %q in the lock file", name, version, got)
		}
		if strings.HasPrefix(name, "node-") && !strings.HasPrefix(version, "24.") {
			t.Errorf("%s is of version %s", name, version)
		}
	}
	for name, one := range lock.Packages {
		if name != "" && one.Integrity == "" || one.Resolved != "" {
			t.Errorf("the lock file has no hash of %q, or where it came from: %+v", name, one)
		}
	}
	page := testkit.ReadFile(t, "../../docs/doors.md")
	for _, h := range preset.Hosts() {
		if version := named.Dependencies[h.Package]; version != h.Tested {
			t.Errorf("pwos was tried with %s %s, and CI runs version %q: bash test/hosts/npm/raise %s@VERSION", h.Name, h.Tested, version, h.Package)
		}
		if row := fmt.Sprintf("| `%s` | `%s` %s |", h.Name, h.Package, h.Tested); !strings.Contains(page, row) {
			t.Errorf("docs/doors.md has no row that begins with %s", row)
		}
		if a := h.ACP; a != nil && a.Adapter != "" && (named.Dependencies[a.Package] != a.Tested || !strings.Contains(page, fmt.Sprintf("| `%s` %s |", a.Package, a.Tested))) {
			t.Errorf("the adapter %s was tried as %s, CI runs version %q, and docs/doors.md has a row", a.Package, a.Tested, named.Dependencies[a.Package])
		}
	}
}
