package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestHostTool: the name of an MCP tool is cut only where no other server can have it.
func TestHostTool(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Bash": "Bash", "mcp__x": "mcp__x", "mcp__": "mcp__", "mcp____": "mcp____", "mcp____x": "mcp____x", "mcp__a__": "mcp__a__",
		"mcp__my_fs__read_file": "mcp/my_fs/read_file", "mcp__a__b": "mcp/a/b", "mcp__a___": "mcp/a/_",
		"mcp__a__b__c": "mcp__a__b__c", "mcp__a___b": "mcp__a___b", "mcp__pwos__evil__run": "mcp__pwos__evil__run", "mcp__pwos____run": "mcp__pwos____run",
		"mcp__a/b__c": "mcp__a/b__c",
	} {
		if got := schema.HostTool(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"Bash": true, "mcp/a/b": true, "mcp/a/b_c": true, "mcp/a/b__c": false, "mcp/a__b/c": false, "mcp/a_/b": false, "mcp/a/_b": false, "mcp/a": false, "mcp/a/_": true,
	} {
		if _, _, clear := schema.MCPTool(name); clear != want {
			t.Errorf("%s is clear: %t, want %t", name, clear, want)
		}
	}
}

// TestServedName: a name that "pwos mcp serve" offers fits hosts, and is clear in the host's form.
func TestServedName(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"Memory.Set", "mcp/fs/read_file", "a/_b", "a__b", "_a", "a_", "é", strings.Repeat("long/", 20) + "tool", strings.Repeat("x", 65)} {
		name, marked := schema.ServedName(target)
		for _, one := range []string{name, marked} {
			if _, _, clear := schema.MCPTool("mcp/pwos/" + one); !clear || len(one) > 64 {
				t.Errorf("%s is offered as %s", target, one)
			}
		}
	}
	if name, _ := schema.ServedName("mcp/fs/read_file"); name != "mcp_fs_read_file" {
		t.Errorf("a usual name is %s", name)
	}
}

// FuzzHostTool: no name that is cut can be cut otherwise, and none is lost.
func FuzzHostTool(f *testing.F) {
	for _, name := range []string{"Bash", "mcp__a__b", "mcp__a__b__c", "mcp__a___b", "mcp__é__b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := schema.HostTool(name)
		server, tool, clear := schema.MCPTool(got)
		switch {
		case got == name:
		case !clear || server == "" || tool == "" || "mcp__"+server+"__"+tool != name || strings.Contains(server+tool, "/"):
			t.Errorf("%q is %q", name, got)
		}
	})
}
