package profile_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/profile"
)

// TestOfProject: a project's file names a profile, and narrows it; what would widen it is refused.
func TestOfProject(t *testing.T) {
	t.Parallel()
	const base = `
grant = { allow = ["Memory.*", "Clock.Get"], hosts = ["a.example", "*.b.example"], ttl = "1h" }
limits = { processes = 10 }
budget = { calls = 10, usd = 2 }
`
	read := func(name string) (*profile.Profile, error) {
		p, err := profile.Parse(name, []byte(base))
		p.Name = name
		return p, err
	}
	for text, want := range map[string]string{ // or the part of an error, after "!"
		"": base,
		"grant.allow = ['Memory.Get', 'Ipc.Send', 'Clock.Get', '*', 'Memory.*']": strings.Replace(base, `"Memory.*", "Clock.Get"`, `"Memory.Get", "Clock.Get", "Memory.*"`, 1),
		"grant.hosts = ['x.b.example', 'b.example', 'a.example', '*.example']":   strings.Replace(base, `"a.example", "*.b.example"`, `"x.b.example", "a.example"`, 1),
		"grant.ttl = '2h'":                            base,
		"grant.ttl = '1m'":                            strings.Replace(base, "1h", "1m", 1),
		"limits.processes = 20":                       base,
		"limits = { processes = 3, open_files = 9 }":  strings.Replace(base, "processes = 10", "processes = 3, open_files = 9", 1),
		"budget = { calls = 0, usd = 3, tokens = 5 }": strings.Replace(base, "calls = 10", "calls = 0, tokens = 5", 1),
		"sandbox = { hide = ['x'], net = 'none', level = 'strict', review = true, read = ['.', 'sub'] }": base + "sandbox = { hide = ['x'], net = 'none', level = 'strict', review = true, read = ['.', 'sub'] }",
		"sandbox.net = 'open'":           "!sandbox.net of a project is none, not open",
		"sandbox.level = 'off'":          "!sandbox.level of a project is strict, not off",
		"sandbox.read = ['../x']":        "!sandbox.read of a project names what it may only read of itself, not ../x",
		"sandbox.read = ['~/x', '/etc']": "!not ~/x",
		"sandbox.write = ['x']":          "!sandbox.write cannot be set for a project",
		"program.env = ['A=b']":          "!program.env cannot be set for a project",
		"program.preset = './x.toml'":    "!program.preset cannot be set for a project",
		"grant.host = true":              "!grant.host cannot be set for a project",
		"grant.quotas = { gpu = 1 }":     "!grant.quotas cannot be set for a project",
		"snapshot.take = true":           "!snapshot.take cannot be set for a project",
		"policy = 'x.cedar'":             "!policy cannot be set for a project",
		"profile = 1":                    "!.pwos.toml:1: profile takes the name of a profile, not 1",
		"profile = 'a'\nprofiles = 'b'":  "!.pwos.toml:2: there is no setting profiles",
		"[grant":                         "!.pwos.toml:1: ",
	} {
		got, err := profile.OfProject(".pwos.toml", []byte(text), read, "base")
		if part, ok := strings.CutPrefix(want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %+v, %v, want %q", text, got, err, part)
			}
			continue
		}
		testkit.Must(t, err)
		expected, err := profile.Parse("base", []byte(want))
		testkit.Must(t, err)
		expected.Name = "base"
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("%q: %+v, want %+v", text, got, expected)
		}
	}
	if p, err := profile.OfProject(".pwos.toml", []byte("profile = 'own'"), read, "base"); err != nil || p.Name != "own" {
		t.Errorf("the named profile is %+v, %v", p, err)
	}
}
