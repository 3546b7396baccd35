package schema_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema"
)

// pattern is the pattern of the specs, anchored to the whole text: in some languages `$` alone also matches before a last line break
// (MESSAGE 4.4.1, EVENT 4.4.1).
var pattern = regexp.MustCompile(`\A[A-Z][a-zA-Z0-9]*\.[A-Z][a-zA-Z0-9]*\z`)

// TestValidType checks the examples of the specs and similar invalid types (MESSAGE 4.4.1 #1-#5, MESSAGE 4.6.1 #4, EVENT 4.4.1 #1-#3,
// EVENT 4.6.1 #4).
func TestValidType(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Memory.Get": true, "Http.Fetch": true, "Crypto.Seal": true, "Job.Completed": true, "Syscall.Describe": true,
		"A.B": true, "Z9.Z0": true, "AZ.ZA": true, "FileSystem.Resolve": true, "X1y2Z3.A0": true,
		"memory.get": false, "MemoryGet": false, "Memory.get": false, "memory.Get": false,
		"": false, ".": false, "A": false, "A.": false, ".B": false, "A..B": false, "A.B.": false, ".A.B": false, "A.B.C": false,
		"A.B\n": false, "A\n.B": false, "\nA.B": false, " A.B": false, "A.B ": false, "A. B": false, "A.B\x00": false,
		"1A.B": false, "A.1B": false, "A_.B": false, "A-b.C": false, "A/B": false, "A.B/C": false, "A:B": false, "A.B\"": false,
		"Ä.B": false, "Aé.B": false, "A.Ⅷ": false, "Ａ.Ｂ": false, "A.B\xff": false, "@.A": false, "[.A": false, "A`.B": false, "A{.B": false,
	} {
		if got := schema.ValidType(name); got != want {
			t.Errorf("ValidType(%q) = %t", name, got)
		}
		if got := pattern.MatchString(name); got != want {
			t.Errorf("the pattern says %t of %q", got, name)
		}
	}
}

func TestValidTypeIsThePattern(t *testing.T) {
	t.Parallel()
	near := rapid.StringOf(rapid.SampledFrom([]rune("AZaz09.._-/ \n\x00é@[`{")))
	rapid.Check(t, func(t *rapid.T) {
		for _, s := range []string{near.Draw(t, "near"), rapid.String().Draw(t, "any"), rapid.StringMatching(pattern.String()).Draw(t, "good")} {
			if schema.ValidType(s) != pattern.MatchString(s) {
				t.Fatalf("ValidType(%q) = %t", s, schema.ValidType(s))
			}
		}
	})
}

func FuzzValidType(f *testing.F) {
	for _, s := range []string{"Memory.Get", "A.B\n", "memory.get", "A..B", "Ä.B", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if schema.ValidType(s) != pattern.MatchString(s) {
			t.Fatalf("ValidType(%q) = %t", s, schema.ValidType(s))
		}
	})
}
