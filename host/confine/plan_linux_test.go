package confine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/host/confine"
	"github.com/promptware-os/pwos/internal/testkit"
)

// full returns the means of a machine that lacks nothing.
func full() confine.Means {
	return confine.Means{ABI: 7, Filter: true, Mounts: true, Overlay: true, Network: true, Link: true, IPC: true, PIDs: true}
}

// TestLevels shows the result of each level if one of the means is missing: strict names it and refuses, default starts
// with one more gap, or only with AllowGaps if the kernel's files cannot be hidden.
func TestLevels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for what, without := range map[string]func(*confine.Means){
		"Landlock":                func(m *confine.Means) { m.ABI = 2 },
		"seccomp":                 func(m *confine.Means) { m.Filter = false },
		"mount namespaces":        func(m *confine.Means) { m.Mounts, m.Overlay = false, false },
		"overlay":                 func(m *confine.Means) { m.Overlay = false },
		"network namespaces":      func(m *confine.Means) { m.Network = false },
		"IPC namespaces":          func(m *confine.Means) { m.IPC = false },
		"PID namespaces":          func(m *confine.Means) { m.PIDs = false },
		"mount namespaces, again": func(m *confine.Means) { *m = confine.Means{} },
	} {
		has := full()
		without(&has)
		_, err := confine.New(confine.Request{Level: confine.Strict, Net: confine.NetNone, Dir: dir}, has)
		if name, _, _ := strings.Cut(what, ","); !errors.Is(err, confine.ErrRefused) || !strings.Contains(err.Error(), name) {
			t.Errorf("strict without %s: %v", what, err)
		}
		if len(has.Gaps()) <= len(full().Gaps()) && what != "mount namespaces" {
			t.Errorf("without %s there is no gap more", what)
		}
		hides := has.Mounts || has.ABI > 0
		r := confine.Request{Level: confine.Default, Net: confine.NetKernel, Dir: dir}
		if _, err := confine.New(r, has); (err == nil) != hides {
			t.Errorf("default without %s: %v", what, err)
		}
		r.AllowGaps = true
		if _, err := confine.New(r, has); err != nil {
			t.Errorf("default without %s, with gaps allowed: %v", what, err)
		}
	}
	if _, err := confine.New(confine.Request{Level: confine.Strict, Net: confine.NetNone, Dir: dir}, full()); err != nil {
		t.Error(err)
	}
	for what, r := range map[string]confine.Request{
		"lacks network namespaces":          {Publishes: true},
		"port 901 of localhost":             {Locals: []uint16{901}},
		"port 443 of localhost is taken by": {Locals: []uint16{443}},
	} {
		has := full()
		has.Link, has.Network = false, !r.Publishes
		r.Level, r.Net, r.Dir = confine.Default, confine.NetKernel, dir
		if _, err := confine.New(r, has); !errors.Is(err, confine.ErrRefused) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	lone := full()
	lone.Link = false
	if gaps := strings.Join(lone.Gaps(), "\n"); !strings.Contains(gaps, "cannot listen on ports 80 and 443, and those that --host names") {
		t.Errorf("without veth devices the gaps are\n%s", gaps)
	}
}

// homeAt returns the homes of a machine with one user, whose variables have no values.
func homeAt(dir string) confine.Homes {
	return confine.Homes{Own: []string{dir}, Secrets: confine.SecretsOf([]string{dir}, func(string) string { return "" })}
}

// TestRefused: no flag can show what is hidden, and no agent works in a home directory or in /.
func TestRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home, work, state := filepath.Join(base, "home"), filepath.Join(base, "work"), filepath.Join(base, "state")
	for _, dir := range []string{home, work, state, filepath.Join(home, ".ssh")} {
		testkit.Must(t, os.MkdirAll(dir, 0o700))
	}
	link := filepath.Join(work, "link")
	testkit.Must(t, os.Symlink(base, link))
	for name, edit := range map[string]func(*confine.Request){
		"read through a link":    func(r *confine.Request) { r.Read = []string{filepath.Join(link, "home")} },
		"write through a link":   func(r *confine.Request) { r.Write = []string{link} },
		"work in /":              func(r *confine.Request) { r.Dir = "/" },
		"work in home":           func(r *confine.Request) { r.Dir = home },
		"work in a secret place": func(r *confine.Request) { r.Dir = filepath.Join(home, ".ssh") },
		"read a secret":          func(r *confine.Request) { r.Read = []string{filepath.Join(home, ".ssh", "id")} },
		"write what is hidden":   func(r *confine.Request) { r.Write = []string{work + "/x"}; r.Hide = []string{work + "/x"} },
		"read the state":         func(r *confine.Request) { r.Read = []string{state} },
		"write everything":       func(r *confine.Request) { r.Write = []string{"/"} },
	} {
		r := confine.Request{Level: confine.Default, Net: confine.NetNone, Dir: work, Private: []string{state}, Homes: homeAt(home)}
		if _, err := confine.New(r, full()); err != nil {
			t.Fatal(err)
		}
		edit(&r)
		if _, err := confine.New(r, full()); !errors.Is(err, confine.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWords: a plan is the same after it was encoded and decoded.
func TestWords(t *testing.T) {
	t.Parallel()
	p, err := confine.New(confine.Request{Level: confine.Default, Net: confine.NetKernel, Dir: t.TempDir(), Ports: []uint16{8080}, Upstreams: 2}, full())
	testkit.Must(t, err)
	again, err := confine.ReadPlan(p.Words())
	if err != nil || !slices.Equal(again.Words(), p.Words()) {
		t.Errorf("got %q, %v, want %q", again.Words(), err, p.Words())
	}
	for _, words := range [][]string{nil, p.Words()[1:], append(p.Words(), "more")} {
		if _, err := confine.ReadPlan(words); err == nil {
			t.Errorf("%q is a plan", words)
		}
	}
}

// TestReview: a copy stands in place of the directory, with all that is requested there; it is hidden no less, and refused where it cannot be.
func TestReview(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	for _, at := range []string{dir, copied} {
		testkit.Must(t, errors.Join(os.MkdirAll(filepath.Join(at, "sub/write"), 0o755), os.Mkdir(filepath.Join(at, "read"), 0o755)))
	}
	r := confine.Request{
		Level: confine.Default, Net: confine.NetNone, Dir: filepath.Join(dir, "sub"), Write: []string{filepath.Join(dir, "sub/write")},
		Read: []string{filepath.Join(dir, "read")}, Review: confine.Place{Source: copied, Target: dir},
	}
	plan, err := confine.New(r, full())
	testkit.Must(t, err)
	for path, source := range plan.Sources() {
		if strings.HasPrefix(path, dir) && !strings.HasPrefix(source, copied) {
			t.Errorf("at %s stands %s", path, source)
		}
	}
	if !slices.Contains(plan.Writable, dir) || slices.Contains(plan.Writable, filepath.Join(dir, "read")) {
		t.Errorf("it may write %v", plan.Writable)
	}
	elsewhere := r
	elsewhere.Dir, elsewhere.Write = t.TempDir(), nil
	plan, err = confine.New(elsewhere, full())
	testkit.Must(t, err)
	if slices.Contains(plan.Writable, dir) {
		t.Errorf("it works elsewhere, and may write %v", plan.Writable)
	}
	testkit.Must(t, os.Symlink(copied, filepath.Join(dir, "link")))
	for what, wrong := range map[string]func(*confine.Request, *confine.Means){
		"mount namespaces": func(_ *confine.Request, m *confine.Means) { m.Mounts = false },
		"symbolic link":    func(r *confine.Request, _ *confine.Means) { r.Review.Source = filepath.Join(dir, "link") },
		"no directory":     func(r *confine.Request, _ *confine.Means) { r.Review.Source = filepath.Join(copied, "gone") },
		"hidden":           func(r *confine.Request, _ *confine.Means) { r.Hide = []string{dir} },
	} {
		with, has := r, full()
		wrong(&with, &has)
		if _, err := confine.New(with, has); !errors.Is(err, confine.ErrRefused) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
