package host_test

import (
	"testing"

	"github.com/promptware-os/pwos/host"
)

// TestIsOwn: a hook is this program, also if that is two files; what lies elsewhere is not.
func TestIsOwn(t *testing.T) {
	t.Parallel()
	for exe, want := range map[[2]string]bool{
		{"/usr/bin/pwos", "/usr/bin/pwos"}:       true,
		{"/usr/bin/pwos", "/usr/bin/pwosd"}:      true,
		{"/usr/bin/pwos-front", "/usr/bin/pwos"}: true,
		{"/home/me/pwos-front", "/usr/bin/pwos"}: false,
		{"/home/me/pwos", "/usr/bin/pwosd"}:      false,
		{"/usr/bin/pwos", "/usr/bin/other"}:      false,
		{"/usr/bin/python3", "/usr/bin/pwosd"}:   false,
	} {
		if got := host.IsOwn(exe[0], exe[1]); got != want {
			t.Errorf("%q is the daemon %q: %t", exe[0], exe[1], got)
		}
	}
}
