package redis_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// entry is the number of bytes per append, about the size of a small write in a log.
const entry = 200

// syncRate appends and syncs for the given time: the maximum rate of one writer on this disk.
func syncRate(t *testing.T, duration time.Duration, sync func(*os.File) error) side {
	t.Helper()
	f, err := os.Create(filepath.Join(testkit.Dir(t), "log"))
	testkit.Must(t, err)
	defer f.Close()
	line := append(bytes.Repeat([]byte("x"), entry-1), '\n')
	var took []time.Duration
	begin := time.Now()
	for last := begin; last.Sub(begin) < duration; {
		if _, err := f.Write(line); err != nil {
			t.Fatal(err)
		}
		testkit.Must(t, sync(f))
		now := time.Now()
		took = append(took, now.Sub(last))
		last = now
	}
	elapsed := time.Since(begin)
	slices.Sort(took)
	return side{float64(len(took)) / elapsed.Seconds(), took[len(took)/2], took[len(took)*99/100]}
}
