package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// anyPattern draws a pattern that a grant may have, now or in an old journal.
func anyPattern() *rapid.Generator[string] {
	parts := rapid.SampledFrom([]string{"a", "b", "ab", "a/b", "a/b/c", "b/a"})
	return rapid.OneOf(
		rapid.SampledFrom([]string{"*", "Memory.*", "Memory.Set", "Syscall.*", "Syscall.Call", "Crypto.*", "Crypto.Open", "SYS_ALLOC", "Syscall.Alloc", "Ipc.Receive", "", "Strange"}),
		rapid.Custom(func(t *rapid.T) string {
			word := rapid.SampledFrom([]string{"Call:", "Tool:", "Upstream:"}).Draw(t, "word")
			return word + rapid.SampledFrom([]string{"", "a/", "a/b/"}).Draw(t, "above") + rapid.OneOf(parts, rapid.Just("*"), rapid.Just("a*"), rapid.Just("")).Draw(t, "last")
		}))
}

// TestPatternsCover: the index of a list agrees with its patterns one by one.
func TestPatternsCover(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(anyPattern(), 0, 5).Draw(t, "list")
		other := anyPattern().Draw(t, "other")
		want := slices.ContainsFunc(list, func(p string) bool { return kernel.Covers(p, other) })
		if got := kernel.Cover(list, other); got != want {
			t.Fatalf("%q covers %q: %v, want %v", list, other, got, want)
		}
	})
}

// TestMeetOfLongLists: the time to find whether a pattern is covered does not depend on the length of the list. A
// request's line has room for some thousands.
func TestMeetOfLongLists(t *testing.T) {
	t.Parallel()
	var paths, trees []string
	for i := range 3000 {
		paths = append(paths, fmt.Sprintf("Call:a/%04d/x", i))
		if i%3 == 0 {
			trees = append(trees, fmt.Sprintf("Call:a/%04d/*", i))
		}
	}
	for _, one := range slices.Concat(paths[:1], trees[:1], []string{"Memory.Set", "SYS_ALLOC", "Upstream:a", "*", "Memory.*", "Strange"}) {
		if looks := kernel.Looks(one); looks > 4+strings.Count(one, "/")+4 {
			t.Errorf("%s: the index is asked for %d patterns", one, looks)
		}
	}
	got := kernel.Meet(paths, trees)
	var want []string
	for i := 0; i < len(paths); i += 3 {
		want = append(want, paths[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what both allow (-want +got):\n%s", diff)
	}
}

// TestMeetOfHosts: the index of hosts agrees with the comparison of all pairs.
func TestMeetOfHosts(t *testing.T) {
	t.Parallel()
	host := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"*", "*.a.b", "*.b", "a.b", "x.a.b", "b", "ab", "1.2.3.4", "*.4", "[::1]", "", "*.", ".b"}).Draw(t, "name") +
			rapid.SampledFrom([]string{"", ":*", ":443", ":80"}).Draw(t, "port")
	})
	grant := rapid.Custom(func(t *rapid.T) *schema.HTTPGrant {
		return &schema.HTTPGrant{Hosts: rapid.SliceOfN(host, 0, 5).Draw(t, "hosts"), Plain: rapid.Bool().Draw(t, "plain")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := grant.Draw(t, "a"), grant.Draw(t, "b")
		if diff := cmp.Diff(kernel.MeetHTTPByPairs(a, b), kernel.MeetHTTP(a, b)); diff != "" {
			t.Fatalf("(-by pairs +by index):\n%s", diff)
		}
	})
}

// TestMeetOfManyHosts: of the thousands of hosts that fit a request's line, only related ones are compared.
func TestMeetOfManyHosts(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 4000 {
		list = append(list, fmt.Sprintf("h%d.example", i))
	}
	list = append(list, "*.example", "*", "*.net")
	for name, want := range map[string]int{"h7.example": 3, "*.org": 1, "x.net": 2, "*.net": 2, "10.0.0.1": 0} {
		if got := kernel.Related(list, name); got != want {
			t.Errorf("%s: %d names are looked at, want %d", name, got, want)
		}
	}
}

func BenchmarkMeetHTTP(b *testing.B) {
	g := &schema.HTTPGrant{}
	for i := range 1500 { // about a line of 16 KiB
		g.Hosts = append(g.Hosts, fmt.Sprintf("h%d.x", i))
	}
	for b.Loop() {
		kernel.MeetHTTP(g, g)
	}
}

func BenchmarkMeet(b *testing.B) {
	var list []string
	for i := range 1500 { // about a line of 16 KiB
		list = append(list, fmt.Sprintf("Call:%04d", i))
	}
	for b.Loop() {
		kernel.Meet(list, list)
	}
}
