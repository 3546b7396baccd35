package once_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/internal/once"
)

// A flag that takes one value refuses a second one; one that takes several keeps all.
func TestFlag(t *testing.T) {
	t.Parallel()
	for line, refused := range map[string]bool{
		"--one a":               false,
		"--one a --one a":       false,
		"--one a --one b":       true,
		"--one a --one=":        true,
		"--one= --one=a":        true,
		"--on --on":             false,
		"--on --on=false":       true,
		"--number 1":            false,
		"--number 1 --number 2": true,
		"--many a --many b":     false,
		"--each a --each b,c":   false,
	} {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		set.String("one", "x", "")
		set.Bool("on", false, "")
		set.Int64("number", 0, "")
		many, each := set.StringSlice("many", nil, ""), set.StringArray("each", nil, "")
		set.VisitAll(once.Flag)
		set.VisitAll(once.Flag) // persistent flags are seen at several commands
		err := set.Parse(strings.Fields(line))
		if refused != (err != nil) {
			t.Errorf("%s: %v", line, err)
		}
		if one, err := set.GetString("one"); err != nil || refused && one == "b" {
			t.Errorf("%s: one is %q (%v)", line, one, err)
		}
		if strings.Contains(line, "--many") && len(*many) != 2 || strings.Contains(line, "--each") && len(*each) != 2 {
			t.Errorf("%s: %q, %q", line, *many, *each)
		}
	}
}
