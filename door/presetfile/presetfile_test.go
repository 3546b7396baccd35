package presetfile_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/door/presetfile"
	"github.com/promptware-os/pwos/internal/testkit"
)

const all = `name = "aider"
package = "aider-chat"
args = ["--yes"]
passes = ["AIDER_MODEL"]
reserved = ["--config"]
fails_open = true
servers = ["aider.chat"]
[env]
A = "{{home}}/x"
[files]
".aider/hook.json" = "{{ask.shell}}"
[tools]
read = ["r"]
write = ["w"]
run = ["x"]
search = ["s"]
[[upstreams]]
name = "openai"
env = { OPENAI_API_BASE = "$url" }
`

// TestParse: a file sets each member that it may have.
func TestParse(t *testing.T) {
	t.Parallel()
	got, err := presetfile.Parse("own.toml", []byte(all))
	testkit.Must(t, err)
	want := &preset.Host{
		Name: "aider", Package: "aider-chat", Args: []string{"--yes"}, Passes: []string{"AIDER_MODEL"}, Reserved: []string{"--config"}, FailsOpen: true,
		Servers: []string{"aider.chat"}, Env: map[string]string{"A": "{{home}}/x"}, Files: map[string]string{".aider/hook.json": "{{ask.shell}}"},
		Tools:     preset.Tools{Read: []string{"r"}, Write: []string{"w"}, Run: []string{"x"}, Search: []string{"s"}},
		Upstreams: []preset.Upstream{{Name: "openai", Env: map[string]string{"OPENAI_API_BASE": "$url"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestParseRefuses: an error says what is wrong, and where.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                             "preset own.toml: name is missing",
		"name = 1":                                     "preset own.toml:1: ",
		"name = \"a\"\n[tols]\n":                       "preset own.toml:2: there is no member [tols]",
		"name = \"a\"\nargs = \"x\"":                   "preset own.toml:2: ",
		"name = \"../a\"":                              `name takes letters, digits and hyphens, such as aider, not "../a"`,
		"name = \"claude\"":                            "claude is a host that pwos knows",
		"name = \"a\"\nargs = [\"{{x}}\"]":             "preset a: {{x}} stands for nothing",
		"name = \"a\"\n[env]\n\"A B\" = \"\"":          `"A B" is no name of a variable`,
		"name = \"a\"\npasses = [\"A=B\"]":             `"A=B" is no name of a variable`,
		"name = \"a\"\n[files]\n\"../x\" = \"\"":       `files are named by their path below the home, not "../x"`,
		"name = \"a\"\n[files]\n\"/x\" = \"\"":         `not "/x"`,
		"name = \"a\"\n[files]\n\"a/./b\" = \"\"":      `not "a/./b"`,
		"name = \"a\"\n[[upstreams]]\nname = \"$(x)\"": `upstreams.name takes that of an upstream`,
		"name = \"a\"\n[[upstreams]]\nname = \"a\"\nenv = { \"$(x)\" = \"\" }": `"$(x)" is no name of a variable`,
	} {
		if h, err := presetfile.Parse("own.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, h, err, want)
		}
	}
}

// TestDocs: the example of the documentation is a declaration.
func TestDocs(t *testing.T) {
	t.Parallel()
	_, block, _ := strings.Cut(testkit.ReadFile(t, "../../docs/doors.md"), "```toml\nname = ")
	block, _, _ = strings.Cut(block, "```")
	if h, err := presetfile.Parse("doors.md", []byte("name = "+block)); err != nil || h.Name != "aider" {
		t.Errorf("%+v, %v", h, err)
	}
}
