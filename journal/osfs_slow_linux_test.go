//go:build pwos_slowdisk

package journal_test

import (
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// go test -tags pwos_slowdisk ./journal -run TestSlowDisk
func TestSlowDisk(t *testing.T) {
	dir := t.TempDir() + "/journal"
	for _, value := range []string{"10", "-1ms", "10ms,", "10ms,1s", "10ms,1s/0", "10ms,1s/2/3"} {
		t.Setenv("PWOS_SLOWDISK", value)
		if l, _, err := journal.Open(journal.Options{Dir: dir}); err == nil {
			t.Errorf("%q is accepted: close: %v", value, l.Close())
		}
	}
	t.Setenv("PWOS_SLOWDISK", "0s,20ms/1")
	l, _ := open(t, journal.Options{Dir: dir})
	begin := time.Now()
	grow(t, l, 3)
	if took := time.Since(begin); took < 20*time.Millisecond {
		t.Errorf("a sync took %v", took)
	}
	t.Setenv("PWOS_SLOWDISK", "")
	testkit.Must(t, l.Close())
}
