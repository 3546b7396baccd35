package journal_test

import (
	"testing"

	"github.com/promptware-os/pwos/journal"
)

func TestLocationDiffers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, machine, directory, oldMachine, oldDirectory, want string }{
		{"the same", "m", "1@2.0", "m", "1@2.0", ""},
		{"machine", "m", "1@2.0", "n", "1@2.0", "on another machine"},
		{"directory", "m", "3@2.0", "m", "1@2.0", "in another directory"},
		{"made at another time", "m", "1@3.0", "m", "1@2.0", "in another directory"},
		{"no machine now", "", "1@2.0", "m", "1@2.0", ""},
		{"no machine then", "m", "1@2.0", "", "1@2.0", ""},
		{"no time now", "m", "1", "m", "1@2.0", ""},
		{"no directory", "m", "", "m", "1@2.0", ""},
	} {
		if got := (journal.Location{Machine: test.machine, Directory: test.directory}).Differs(test.oldMachine, test.oldDirectory); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
