package access_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestVariables: a kernel opens the variables that it has sealed, also after a restart; another kernel does not, nor for another
// name. A repeated variable is sealed the same, and one of an older journal is opened as it is.
func TestVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kernel := func(dir string) *access.Variables {
		key := must(access.OpenHostKey(dir))(t)
		return must(access.NewVariables(t.Context(), key))(t)
	}
	first, again, other := kernel(dir), kernel(dir), kernel(t.TempDir())
	for _, value := range []string{"", "swordfish", "host-key:swordfish", strings.Repeat("x", 8192)} {
		sealed := must(first.Seal("TOKEN", value))(t)
		if value != "" && strings.Contains(sealed, "swordfish") || sealed != must(again.Seal("TOKEN", value))(t) || sealed == must(first.Seal("OTHER", value))(t) {
			t.Errorf("%q is sealed as %s", value, sealed)
		}
		if opened, err := again.Open("TOKEN", sealed); err != nil || opened != value {
			t.Errorf("it opens %q, %v, want %q", opened, err, value)
		}
		for name, v := range map[string]*access.Variables{"TOKEN": other, "OTHER": first} {
			_, err := v.Open(name, sealed)
			refused(t, err, fault.CryptoCannot)
		}
	}
	for name, value := range map[string]string{"PATH": "/bin", "HOME": "host-key:/home", "LC_ALL": "C", "FLAG": "1"} { // any kernel can start the program again
		sealed := must(first.Seal(name, value))(t)
		if opened, err := other.Open(name, sealed); err != nil || sealed != value || opened != value {
			t.Errorf("%s=%s is sealed as %s, and opened as %s, %v", name, value, sealed, opened, err)
		}
	}
	if opened, err := first.Open("TOKEN", "of an older journal"); err != nil || opened != "of an older journal" {
		t.Errorf("it opens %q, %v", opened, err)
	}
}
