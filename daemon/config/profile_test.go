package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestProfiles: each shipped profile can be read, and an error in a user's profile is reported with its place.
func TestProfiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := config.Profiles(dir)
	if got := strings.Join(names, " "); got != "coder reader worker" {
		t.Errorf("there are %s", got)
	}
	for _, name := range names {
		if p, err := config.ReadProfile(dir, name); err != nil || len(p.Grant.Allow) == 0 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for text, want := range map[string]string{
		"[budget]\ncalls = 5\nusd = 0.5\nwall_seconds = 0\n": "",
		"[budget]\ncalls = -1\n":                             "own.toml: budget.calls must not be negative",
		"[budget]\nusd = nan\n":                              "own.toml: budget.usd must not be negative",
		"[budget]\ncalls = 1.5\n":                            "own.toml:2: ",
		"[budget]\n\nhugs = 1\n":                             "own.toml:3: budget.hugs: there is no such setting in a profile",
		"policy = \"../a.cedar\"\n":                          "own.toml: policy must be the name of a file beside the profile",
		"policy = \"a.toml\"\n":                              "own.toml: policy must be the name of a file beside the profile",
		"[sandbox]\nnet = \"wide\"\n":                        "own.toml: sandbox.net must be one of none, kernel, open",
		"[grant\n":                                           "own.toml:1: ",
	} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "own.toml"), []byte(text), 0o600))
		p, err := config.ReadProfile(dir, "own")
		switch {
		case want == "" && err == nil:
			if b := p.Budget; *b.Calls != 5 || *b.WallSeconds != 0 || *b.USD != 0.5 || b.Tokens != nil {
				t.Errorf("a budget of %+v", b)
			}
		case err == nil, want == "", !strings.Contains(err.Error(), want):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestProfileNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"reader": true, "my own": true, strings.Repeat("x", 100): true,
		strings.Repeat("x", 101): false, "": false, "a/b": false, `a\b`: false, ".a": false, "a\nb": false,
	} {
		if got := config.IsProfileName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
