package main_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/schema"
)

func ptr[T any](v T) *T { return &v }

// TestInside checks paths that contain symbolic links or do not exist.
func TestInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"home/state", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("home", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"home/state", "home", true},
		{"home", "home", true},
		{"home/state", "link", true},
		{"link/state", "home", true},
		{"home/not/yet", "home", true},
		{"link/not/yet", "home", true},
		{"elsewhere", "home", false},
		{"elsewhere/not/yet", "link", false},
		{"home", "home/state", false},
		{"homely", "home", false},
	} {
		if got := pwos.Inside(filepath.Join(dir, tt.path), filepath.Join(dir, tt.dir)); got != tt.want {
			t.Errorf("%s in %s: %v", tt.path, tt.dir, got)
		}
	}
}

// TestEndStatus checks that run exits with the status of the program, in the convention of shells.
func TestEndStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		exit *schema.Exit
		want int
	}{
		{"well", &schema.Exit{Code: ptr(int64(0)), Reason: "exited"}, 0},
		{"a code", &schema.Exit{Code: ptr(int64(9)), Reason: "exited"}, 9},
		{"a signal", &schema.Exit{Signal: ptr(int64(15)), Reason: "signalled"}, 143},
		{"a limit", &schema.Exit{Signal: ptr(int64(9)), Reason: "limit:wall"}, 137},
		{"on order, well", &schema.Exit{Code: ptr(int64(0)), Reason: "ordered"}, 0},
		{"never begun", &schema.Exit{Reason: "not started", Why: ptr("no such file")}, 127},
		{"unknown", &schema.Exit{Reason: "unknown"}, 1},
	} {
		if got := pwos.EndStatus(schema.Descriptor{AgentID: "x", Hosted: schema.Hosted{Exit: tt.exit}}); got != tt.want {
			t.Errorf("%s: exit status %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestTicksOf checks that a duration is rounded up to ticks.
func TestTicksOf(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{time.Second: 1, 1500 * time.Millisecond: 2, 5 * time.Minute: 300} {
		if got := pwos.TicksOf(d); got != want {
			t.Errorf("%v is %d ticks, want %d", d, got, want)
		}
	}
}
