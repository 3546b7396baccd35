package execs_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/effect/execs"
	"github.com/promptware-os/pwos/host"
)

// TestTake: what was added is taken once, by agent, in its order, with all that is known.
func TestTake(t *testing.T) {
	t.Parallel()
	var k execs.Keeper
	at := time.UnixMilli(1)
	k.Add(7, &host.Exec{Time: at, PID: 2, Thread: 2, Parent: 1, Program: "/bin/sh", Path: "/bin/true", Dir: "/d", Args: []string{"true", "", "--token=x"}}, "")
	k.Add(8, &host.Exec{Path: "/bin/other", First: true}, "")
	k.Add(7, &host.Exec{PID: 3, Hidden: true, Cut: true}, "a rule")
	list, dropped := k.Take(7)
	want := []execs.Record{
		{Time: at, PID: 2, Parent: 1, By: "/bin/sh", Path: "/bin/true", Dir: "/d", Args: []string{"true", "", "--token=[redacted]"}},
		{PID: 3, Hidden: true, Cut: true, Refused: "a rule"},
	}
	if diff := cmp.Diff(want, list); diff != "" || dropped != 0 || list[0].Name() != "true" {
		t.Errorf("%d dropped, %s", dropped, diff)
	}
	if list, _ := k.Take(7); list != nil {
		t.Errorf("taken twice: %+v", list)
	}
	if list, _ := k.Take(8); len(list) != 1 || !list[0].First {
		t.Errorf("of another agent: %+v", list)
	}
}

// TestSearch: the requests of a search in PATH are one record, the last of them. Another request of the same process is not part of it.
func TestSearch(t *testing.T) {
	t.Parallel()
	var k execs.Keeper
	add := func(thread int, path string, missing bool, args ...string) {
		k.Add(7, &host.Exec{PID: thread, Thread: thread, Path: path, Args: args, Missing: missing}, "")
	}
	add(2, "/a/git", true, "git", "x")
	add(3, "/a/go", true, "go")
	add(2, "/b/git", true, "git", "x")
	add(2, "/c/git", false, "git", "x")
	add(2, "/c/git", false, "git", "x")
	add(3, "/b/go", true, "go")
	add(3, "/b/go", true, "go", "other")
	add(3, "/b/gofmt", true, "go", "other")
	list, _ := k.Take(7)
	var got []string
	for _, r := range list {
		got = append(got, fmt.Sprintf("%s %v %d %v", r.Path, r.Args, r.Tried, r.Missing))
	}
	want := []string{"/c/git [git x] 2 false", "/b/go [go] 1 true", "/c/git [git x] 0 false", "/b/go [go other] 0 true", "/b/gofmt [go other] 0 true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBounds: a long exec is cut, and of too many the last are only counted; the next Take begins again.
func TestBounds(t *testing.T) {
	t.Parallel()
	var k execs.Keeper
	long := strings.Repeat("é", 100_000)
	var all sync.WaitGroup
	const each, at = 500, 4
	for n := range at {
		all.Go(func() {
			for range each {
				k.Add(7, &host.Exec{PID: n, Thread: n, Path: "/x", Args: []string{"x", long, "after"}}, "")
			}
		})
	}
	all.Wait()
	list, dropped := k.Take(7)
	bytes := 0
	for _, r := range list {
		for _, arg := range r.Args {
			bytes += len(arg)
		}
		if !r.Cut || len(r.Args) != 2 || strings.Trim(r.Args[1], "é") != "" {
			t.Fatalf("%d arguments, the second of %d bytes, cut: %v", len(r.Args), len(r.Args[1]), r.Cut)
		}
	}
	if len(list)+dropped != each*at || dropped == 0 || bytes > 1<<20 || bytes < 1<<19 {
		t.Errorf("%d are kept with %d bytes, and %d dropped", len(list), bytes, dropped)
	}
	k.Add(7, &host.Exec{Path: "/x"}, "")
	if list, dropped := k.Take(7); len(list) != 1 || dropped != 0 {
		t.Errorf("after a Take, %d and %d dropped", len(list), dropped)
	}
}
