package egress

import (
	"encoding/binary"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/promptware-os/pwos/effect/fetch"
)

const (
	maxQuery   = 4 << 10          // most bytes of a query
	dnsIdle    = 10 * time.Second // idle time of a TCP connection between two queries
	dnsTTL     = 30               // seconds; a connection is checked again
	maxMisses  = 64               // most refused names that are journaled per missPeriod
	missPeriod = time.Minute
)

// serveDNS answers queries in UDP datagrams.
func (a *agent) serveDNS() {
	buf := make([]byte, maxQuery)
	for {
		n, from, err := a.sockets.DNS.ReadFrom(buf)
		switch {
		case a.ctx.Err() != nil:
			return
		case err != nil:
			select {
			case <-a.ctx.Done():
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		if answer := a.answer(buf[:n]); answer != nil {
			_, _ = a.sockets.DNS.WriteTo(answer, from) // the client retries
		}
	}
}

// serveDNSConn answers the queries of a TCP connection, one at a time.
func (a *agent) serveDNSConn(c *agentConn) {
	defer func() { _ = c.Close() }()
	var size [2]byte
	for {
		_ = c.SetDeadline(time.Now().Add(dnsIdle))
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(size[:]))
		if n == 0 || n > maxQuery {
			return
		}
		query := make([]byte, n)
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		answer := a.answer(query)
		if answer == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer returns the answer to a query, or nil. It asks no other name server: an allowed name gets an address of the agent's network,
// whether or not the name exists.
func (a *agent) answer(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil // answering an answer could loop forever
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	if h.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return build(reply, nil, nil)
	}
	q, err := p.Question()
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return build(reply, nil, nil)
	}
	if _, err := p.Question(); err != dnsmessage.ErrSectionDone { // the library returns it unwrapped; resolvers send one question
		reply.RCode = dnsmessage.RCodeFormatError
		return build(reply, nil, nil)
	}
	if q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeRefused
		return build(reply, &q, nil)
	}
	addr, ok := a.resolve(q.Name.String())
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
		return build(reply, &q, nil)
	}
	if q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeALL {
		return build(reply, &q, nil)
	}
	return build(reply, &q, &dnsmessage.AResource{A: addr})
}

// build encodes an answer. It returns nil if the answer cannot be encoded.
func build(h dnsmessage.Header, q *dnsmessage.Question, r *dnsmessage.AResource) []byte {
	b := dnsmessage.NewBuilder(nil, h)
	b.EnableCompression()
	var err error
	if q != nil {
		err = b.StartQuestions()
		if err == nil {
			err = b.Question(*q)
		}
	}
	if err == nil && r != nil {
		if err = b.StartAnswers(); err == nil {
			err = b.AResource(dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: dnsTTL}, *r)
		}
	}
	out, finish := b.Finish()
	if err != nil || finish != nil {
		return nil
	}
	return out
}

// resolve returns the address that is assigned to a name, if the agent may connect to the name.
func (a *agent) resolve(name string) (addr [4]byte, ok bool) {
	e, err := fetch.ParseEndpoint(strings.TrimSuffix(name, "."), 443)
	if err != nil || e.IsAddr() {
		return addr, false
	}
	if !a.mayResolve(e) {
		a.missed(e)
		return addr, false
	}
	return a.names.addr(e.Host()).As4(), true
}

func (a *agent) mayResolve(e fetch.Endpoint) bool {
	g := a.current()
	if g.admitsName(e) {
		return true
	}
	for _, u := range a.Config.Upstreams {
		if a.taken[u.Name] != nil && u.host == e.Host() && g.admitsUpstream(u.Name) {
			return true
		}
	}
	return false
}

// misses has the names that were refused in the current missPeriod. At most maxMisses names are journaled in it, each once.
type misses struct {
	mu    sync.Mutex
	since time.Time
	seen  map[string]bool
}

// first reports whether to journal a name.
func (m *misses) first(name string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.since) >= missPeriod {
		m.since, m.seen = now, map[string]bool{}
	}
	if m.seen[name] || len(m.seen) == maxMisses {
		return false
	}
	m.seen[name] = true
	return true
}

// missed journals that the agent may not look up a name. It journals each name once per missPeriod, because programs repeat queries.
func (a *agent) missed(e fetch.Endpoint) {
	if strings.HasSuffix(e.Host(), ".arpa") || !a.misses.first(e.Host(), time.Now()) {
		return
	}
	if !a.enter() {
		return
	}
	go func() {
		defer a.work.Done()
		if err := a.lookedUp(e); err == nil {
			a.Log.Debug("name was allowed meanwhile", "pid", a.pid)
		}
	}()
}

// inside is the network of the addresses that are assigned to names. It is reserved for benchmarks (RFC 2544).
var inside = netip.MustParsePrefix("198.18.0.0/15")

// names has the addresses that are assigned to names in an agent's network. It drops the oldest beyond the limit.
type names struct {
	most int

	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	queue  []netip.Addr // in the order of assignment
	next   uint32
}

func newNames(most int) *names {
	return &names{most: most, next: 1, byName: map[string]netip.Addr{}, byAddr: map[netip.Addr]string{}}
}

// addr returns the address of a name, and assigns one if it has none.
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

// fresh returns the next unassigned address. It skips the first and last address of the network, and the agent's own, which is the
// one after the first.
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

// name returns the name to which an address is assigned, or "".
func (n *names) name(a netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byAddr[a.Unmap()]
}
