package kernel_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestCallable: a token shows the registered syscalls that it names, and those below its paths.
func TestCallable(t *testing.T) {
	t.Parallel()
	registered := []string{"Sum.Add", "Sum.Sub", "mcp/fs/write", "mcp/fs/read", "mcp/web/get"}
	for _, test := range []struct {
		allowed         []string
		syscalls, paths []string
	}{
		{[]string{"*"}, nil, registered[2:]}, // which includes Syscall.Call
		{[]string{"Sum.Add", "Call:mcp/fs/*"}, []string{"Sum.Add"}, []string{"mcp/fs/*", "mcp/fs/read", "mcp/fs/write"}},
		{[]string{"Call:mcp/fs/read", "Call:tools/x"}, nil, []string{"mcp/fs/read", "tools/x"}},
		{[]string{"Memory.Get"}, nil, nil},
	} {
		token := &kernel.Token{Granted: schema.Token{PID: 1, TokenGrant: schema.TokenGrant{AllowedSyscalls: test.allowed}}}
		out := kernel.Callable(registered, 1, token, 0)
		sums := slices.DeleteFunc(out.Syscalls, func(typ string) bool { _, own := schema.Lookup(typ); return own })
		want := slices.Sorted(slices.Values(test.paths))
		if !slices.Equal(sums, test.syscalls) || !slices.Equal(out.Paths, want) {
			t.Errorf("%q: %q, %q, want %q, %q", test.allowed, sums, out.Paths, test.syscalls, want)
		}
	}
}
