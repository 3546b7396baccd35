package schema_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestToolPath checks that a path that must be resolved first is not accepted, so that it cannot bypass a grant for a subtree.
func TestToolPath(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"os/tools/today": "tools/today", "tools/today": "tools/today", "os/os/x": "os/x", "mcp/fs/read_file-2.0": "mcp/fs/read_file-2.0",
		"ping": "", "./tools/today": "", "../tools/today": "", "tools/../secret/x": "", "tools/./x": "", "tools//x": "", "tools/": "", "os:///tools/x": "",
		"tools/%2e%2e/x": "", "tools/x*": "", "https://a/b": "", "/tools/x": "", "tools/\u200bx": "", "": "",
	} {
		if got, ok := schema.ToolPath(name); got != want && ok || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, ok, want)
		}
	}
}
