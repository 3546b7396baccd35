package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/schema"
)

func ptr[T any](v T) *T { return &v }

// TestLimitsOf checks that a limit is a known name, given once, with a whole number of at least 1; K, M and G are powers of 1024.
func TestLimitsOf(t *testing.T) {
	t.Parallel()
	got, err := pwos.LimitsOf([]string{"memory_bytes=256M", "cpu_seconds=3", "open_files=1K"})
	if err != nil || *got.MemoryBytes != 256<<20 || *got.CPUSeconds != 3 || *got.OpenFiles != 1024 || got.WallSeconds != nil || got.Processes != nil {
		t.Errorf("limits are %+v, %v", got, err)
	}
	if got, err := pwos.LimitsOf(nil); got != nil || err != nil {
		t.Errorf("no limits are %+v, %v", got, err)
	}
	for _, bad := range [][]string{
		{"cpu_seconds"},
		{"cpu_seconds="},
		{"cpu_seconds=0"},
		{"cpu_seconds=-1"},
		{"cpu_seconds=1.5"},
		{"cpu_seconds=1KK"},
		{"cpu_seconds=K"},
		{"memory_bytes=9999999999G"},
		{"memory=1"},
		{"=1"},
		{"processes=1", "processes=2"},
	} {
		if got, err := pwos.LimitsOf(bad); err == nil {
			t.Errorf("%q is accepted as %+v", bad, got)
		}
	}
}

// TestEnvOf checks that a variable has the given value or that of this environment, and that an unset one is an error.
func TestEnvOf(t *testing.T) {
	t.Parallel()
	here := func(name string) (string, bool) {
		value, ok := map[string]string{"HERE": "yes", "EMPTY": ""}[name]
		return value, ok
	}
	got, err := pwos.EnvOf([]string{"A=b=c", "HERE", "EMPTY", "NONE="}, here)
	if want := map[string]string{"A": "b=c", "HERE": "yes", "EMPTY": "", "NONE": ""}; err != nil || !maps.Equal(got, want) {
		t.Errorf("the environment is %q, %v", got, err)
	}
	for _, bad := range []string{"MISSING", "", "=x"} {
		if got, err := pwos.EnvOf([]string{bad}, here); err == nil {
			t.Errorf("%q is accepted as %q", bad, got)
		}
	}
}

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
