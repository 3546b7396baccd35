package kernel

import (
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// Covers compares two patterns, Cover a list's index with one.
func Covers(pattern, other string) bool { return covers(pattern, other) }

func Cover(list []string, other string) bool { return patternsOf(list).cover(other) }

// Looks bounds how many patterns the index looks up.
func Looks(other string) int { return len(slices.Collect(covering(other))) }

// Meet is the intersection of two lists.
func Meet(a, b []string) []string { return meet(a, b) }

// MeetHTTP is the intersection of two grants.
func MeetHTTP(a, b *schema.HTTPGrant) []string { return meetHTTP(a, b).Hosts }

// MeetHTTPByPairs is the same, by comparing all pairs of hosts.
func MeetHTTPByPairs(a, b *schema.HTTPGrant) []string {
	list := []string{}
	for _, one := range a.Hosts {
		for _, other := range b.Hosts {
			x, y := hostName(one), hostName(other)
			name := x
			switch {
			case x == y || nameWithin(x, y):
			case nameWithin(y, x):
				name = y
			default:
				continue
			}
			meetPorts(one[len(x):], map[string]bool{other[len(y):]: true}, a.Plain && b.Plain, func(port string) { list = append(list, name+port) })
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Related is the number of a list's names that are related to one.
func Related(list []string, name string) (n int) {
	hostsOf(list).related(name, func(string) { n++ })
	return n
}
