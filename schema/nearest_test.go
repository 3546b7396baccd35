package schema_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestNearest checks the suggestions for misspelt names, and that a name without a close one has none.
func TestNearest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Memory.Sett": "Memory.Set", "memory.set": "Memory.Set", "Memroy.Get": "Memory.Get", "sys_alloc": "Syscall.Alloc", "Syscall.Pong": "Syscall.Ping",
		"Rocket.Launch": "", "": "", "x": "", "Process.NoteStar": "",
	} {
		if got := schema.NearestType(name); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"lst": "ls", "l": "", "st": "set", "get": "get", "nonsense": ""} {
		if got := schema.Nearest(name, slices.Values([]string{"get", "set", "ls", "rm"})); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
}
