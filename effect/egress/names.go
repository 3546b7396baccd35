package egress

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// inside is where the addresses of names lie: the network of benchmarks, which nobody has outside (RFC 2544).
var inside = netip.MustParsePrefix("198.18.0.0/15")

// names are the addresses that stand for hosts in an agent's network. Of many the oldest is forgotten.
type names struct {
	most int

	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	queue  []netip.Addr // in the order in which they were given
	next   uint32
}

func newNames(most int) *names {
	return &names{most: most, next: 1, byName: map[string]netip.Addr{}, byAddr: map[netip.Addr]string{}}
}

// addr returns the address of a name, a new one where it has none.
func (n *names) addr(name string) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.byName[name]; ok {
		return a
	}
	if len(n.queue) >= n.most {
		oldest := n.queue[0]
		n.queue = n.queue[1:]
		delete(n.byName, n.byAddr[oldest])
		delete(n.byAddr, oldest)
	}
	a := n.fresh()
	n.byName[name], n.byAddr[a] = a, name
	n.queue = append(n.queue, a)
	return a
}

// fresh returns the next address that stands for nothing. Those at the ends of the network are left out, and the first one, which
// is the agent's own.
func (n *names) fresh() netip.Addr {
	const size = 1 << 17
	first := inside.Addr().As4()
	for {
		n.next = max(2, (n.next+1)%(size-1))
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(first[:])+n.next)
		a := netip.AddrFrom4(b)
		if _, used := n.byAddr[a]; !used {
			return a
		}
	}
}

// name returns what an address stands for, "" where that is nothing.
func (n *names) name(a netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byAddr[a.Unmap()]
}
