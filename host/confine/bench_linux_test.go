package confine_test

import (
	"testing"

	"github.com/promptware-os/pwos/host/confine"
)

// BenchmarkNew measures the planning for each program that is started, with an empty home directory.
func BenchmarkNew(b *testing.B) {
	r := confine.Request{Level: confine.Default, Net: confine.NetNone, Dir: b.TempDir(), Homes: homeAt(b.TempDir())}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := confine.New(r, full()); err != nil {
			b.Fatal(err)
		}
	}
}
