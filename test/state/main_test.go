// Package state_test tests what a kernel keeps in its files: no secrets, the state of an older kernel, its own past.
package state_test

import (
	"flag"
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

func TestMain(m *testing.M) {
	if os.Getenv("PWOS_LONG") != "" { // the flags are not parsed yet, since the arguments may be a daemon's
		if err := flag.Set("rapid.checks", "10000"); err != nil {
			panic(err)
		}
	}
	testkernel.Main(m)
}
