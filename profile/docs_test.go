package profile_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/profile"
)

var update = flag.Bool("update", false, "write the list of settings into docs/profiles.md")

// TestDocs compares the list in docs/profiles.md with the settings, and reads the profiles there.
func TestDocs(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "docs", "profiles.md")
	text := testkit.ReadFile(t, name)
	block := regexp.MustCompile("(?s)(<!-- generated: go test ./profile -run TestDocs -update -->\n).*?(<!-- end -->\n)")
	if !block.MatchString(text) {
		t.Fatalf("%s has no list", name)
	}
	var b strings.Builder
	table := ""
	for _, s := range profile.Settings() {
		in, key, nested := strings.Cut(s.Key, ".")
		if !nested {
			in, key = "", s.Key
		}
		switch {
		case in != table:
			fmt.Fprintf(&b, "\n- `[%s]`: `%s`", in, key)
		case b.Len() == 0:
			fmt.Fprintf(&b, "- `%s`", key)
		default:
			fmt.Fprintf(&b, ", `%s`", key)
		}
		table = in
		switch s.Flag {
		case strings.ReplaceAll(key, "_", "-"), strings.TrimSuffix(in, "s") + " " + key + "=":
		case "":
			b.WriteString(" (no flag)")
		default:
			fmt.Fprintf(&b, " (`--%s`)", s.Flag)
		}
	}
	b.WriteString("\n")
	want := block.ReplaceAllString(text, "${1}\n"+strings.ReplaceAll(b.String(), "$", "$$")+"\n${2}")
	examples := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) == 0 {
		t.Errorf("%s has no profile", name)
	}
	for _, example := range examples {
		parse := profile.Parse
		if strings.HasPrefix(example[1], "profile =") { // that of a project
			parse = func(at string, text []byte) (*profile.Profile, error) {
				return profile.OfProject(at, text, func(name string) (*profile.Profile, error) { return profile.Read(t.TempDir(), name) }, "")
			}
		}
		if _, err := parse(name, []byte(example[1])); err != nil {
			t.Error(err)
		}
	}
	if *update {
		testkit.Must(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	if text != want {
		t.Errorf("the list in %s is not that of the settings: go test ./profile -run TestDocs -update", name)
	}
}
