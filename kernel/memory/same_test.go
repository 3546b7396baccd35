package memory_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/schema"
)

// TestSame: the comparison agrees with schema.Same, in every spelling of values.
func TestSame(t *testing.T) {
	t.Parallel()
	values := []string{
		`""`, `"a"`, `"\u0061"`, `"a\u0061\u0061\u0061"`, `"aaaa"`, `"\u0061\u0061\u0061\u0061"`, `" "`, `"    "`, `1`, `0001`, ` 1 `,
		`{"a":"\u0061\u0061"}`, `{ "\u0061" : "aa" }`, `[1, 2]`, `[1,2]`, `"\""`, `"\u0022"`, `"\\"`, `"\u005c"`, `null`, `"é"`, `"\u00e9"`,
	}
	rapid.Check(t, func(t *rapid.T) {
		pad := strings.Repeat(" ", rapid.IntRange(0, 40).Draw(t, "white space"))
		a, b := rapid.SampledFrom(values).Draw(t, "expected"), pad+rapid.SampledFrom(values).Draw(t, "stored")
		if got, want := memory.Same(schema.Value(a), b), schema.Same(schema.Value(a), schema.Value(b)); got != want {
			t.Fatalf("%s and %s: %v, want %v", a, b, got, want)
		}
	})
}

// TestSameIsBounded: of a stored value, at most six times the length of the expected one is read: the rest need not
// even be valid.
func TestSameIsBounded(t *testing.T) {
	for _, unit := range []string{"x", " ", "é", `\n`} {
		stored := `"` + strings.Repeat(unit, 1<<20) + `"`
		if !memory.Outweighs(stored[:200], 20) || !memory.Outweighs(stored, 16<<10) {
			t.Errorf("a million of %q may be what 16 KiB say", unit)
		}
		if allocs := testing.AllocsPerRun(1, func() { memory.Same(schema.Value(`"`+unit+`"`), stored) }); allocs > 4 {
			t.Errorf("%q: %v allocations", unit, allocs)
		}
	}
}
