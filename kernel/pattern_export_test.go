package kernel

import (
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// Covers is what one pattern says of another, Cover what the index of a list does.
func Covers(pattern, other string) bool { return covers(pattern, other) }

func Cover(list []string, other string) bool { return patternsOf(list).cover(other) }

// Looks is how many patterns the index looks for at most.
func Looks(other string) int { return len(slices.Collect(covering(other))) }

// Meet is what two lists both allow.
func Meet(a, b []string) []string { return meet(a, b) }

// MeetHTTP is what two grants both allow.
func MeetHTTP(a, b *schema.HTTPGrant) []string { return meetHTTP(a, b).Hosts }

// MeetHTTPByPairs is the same, found by looking at each host of the one beside each of the other.
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

// Related is how many names of a list have to do with one.
func Related(list []string, name string) (n int) {
	hostsOf(list).related(name, func(string) { n++ })
	return n
}
