package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/schema"
)

func ptr[T any](v T) *T { return &v }

// Limits are named, whole, at least 1, given once; K, M and G are powers of 1024.
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
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
}

// A variable has a value, or the one that it has here; one that is not set is not taken for empty.
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
			t.Errorf("%q is taken for %q", bad, got)
		}
	}
}

// What is printed for a shell is read back by one as it was.
func TestQuoted(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"": "''", "plain-1.2": "plain-1.2", "Memory.*": "'Memory.*'", "two words": "'two words'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "a=b,c": "a=b,c",
	} {
		if got := pwos.Quoted(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
	}
}

// A place lies in a directory also where it is reached through a symbolic link, or does not exist yet.
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

// The end of an agent is the exit status of run, as shells have it.
func TestEndStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		exit *schema.Exit
		want int
		text string
	}{
		{"well", &schema.Exit{Code: ptr(int64(0)), Reason: "exited"}, 0, "exited 0"},
		{"a code", &schema.Exit{Code: ptr(int64(9)), Reason: "exited"}, 9, "exited 9"},
		{"a signal", &schema.Exit{Signal: ptr(int64(15)), Reason: "signalled"}, 143, "was killed by SIGTERM"},
		{"a limit", &schema.Exit{Signal: ptr(int64(9)), Reason: "limit:wall"}, 137, "was killed by SIGKILL (limit:wall)"},
		{"on order, well", &schema.Exit{Code: ptr(int64(0)), Reason: "ordered"}, 0, "exited 0 (ordered)"},
		{"never begun", &schema.Exit{Reason: "not started", Why: ptr("no such file")}, 127, "could not be started: no such file"},
		{"unknown", &schema.Exit{Reason: "unknown"}, 1, "ended, nobody knows how"},
	} {
		if got := pwos.EndStatus(schema.Descriptor{AgentID: "x", Hosted: schema.Hosted{Exit: tt.exit}}); got != tt.want {
			t.Errorf("%s: exit status %d, want %d", tt.name, got, tt.want)
		}
		if got := pwos.EndText(tt.exit); got != tt.text {
			t.Errorf("%s: it %s, want %s", tt.name, got, tt.text)
		}
	}
}

// An agent is gone when its process has ended and nothing of its program is left, in whatever order that becomes known.
func TestGone(t *testing.T) {
	t.Parallel()
	command, exit, os := []string{"x"}, &schema.Exit{Reason: "exited"}, ptr(int64(7))
	for _, tt := range []struct {
		name string
		d    schema.Descriptor
		want bool
	}{
		{"running", schema.Descriptor{State: "RUNNING", Hosted: schema.Hosted{Command: command, OSPID: os}}, false},
		{"between restarts", schema.Descriptor{State: "READY", Hosted: schema.Hosted{Command: command, Exit: exit}}, false},
		{"terminated, its program is still there", schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Command: command, OSPID: os, Exit: exit}}, false},
		{"terminated, its end not noted", schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Command: command}}, false},
		{"gone", schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Command: command, Exit: exit}}, true},
		{"without a program", schema.Descriptor{State: "TERMINATED"}, true},
	} {
		if got := pwos.Gone(&tt.d); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A time to live lasts at least as long as was asked for.
func TestTicksOf(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{time.Second: 1, 1500 * time.Millisecond: 2, 5 * time.Minute: 300} {
		if got := pwos.TicksOf(d); got != want {
			t.Errorf("%v is %d ticks, want %d", d, got, want)
		}
	}
	for n, want := range map[int64]string{1: "first", 3: "third", 4: "4th", 11: "11th", 21: "21st", 112: "112th", 122: "122nd"} {
		if got := pwos.Ordinal(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// ps says of a state what there is to know about it, and shows a command as it could be typed, on one line and not too long.
func TestPsTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		d    schema.Descriptor
		want string
	}{
		{schema.Descriptor{State: "RUNNING"}, "RUNNING"},
		{schema.Descriptor{State: "BLOCKED", BlockedUntilTick: ptr(int64(30))}, "BLOCKED until 30"},
		{schema.Descriptor{State: "TERMINATED"}, "TERMINATED"},
		{schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Exit: &schema.Exit{Code: ptr(int64(3)), Reason: "exited"}}}, "TERMINATED, exit 3"},
		{schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Exit: &schema.Exit{Signal: ptr(int64(9)), Reason: "signalled"}}}, "TERMINATED, signal 9"},
		{schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Exit: &schema.Exit{Reason: "limit:wall"}}}, "TERMINATED, limit:wall"},
	} {
		if got := pwos.StateText(&tt.d); got != tt.want {
			t.Errorf("a state is %q, want %q", got, tt.want)
		}
	}
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{nil, ""},
		{[]string{"sh", "-c", "a b"}, "sh -c 'a b'"},
		{[]string{"x", "a\nb"}, `x 'a\u000ab'`},
		{[]string{strings.Repeat("x", 61)}, strings.Repeat("x", 57) + "..."},
	} {
		if got := pwos.CommandText(tt.command); got != tt.want {
			t.Errorf("%q is shown as %q, want %q", tt.command, got, tt.want)
		}
	}
}
