package cluster_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// mode is what a link does with the bytes of its connections.
type mode int32

const (
	passes  mode = iota
	delays       // forwards them late
	swallow      // drops them both ways; the connections stay
	forth        // forwards only those of the connecting side
	back         // forwards only the answers
	breaks       // ends each connection
	modes        // number of modes
)

func (m mode) String() string {
	return [...]string{"passes", "delays", "swallows", "passes one way", "passes the other way", "breaks"}[m]
}

// link is the network between a process and an address: it accepts connections, and forwards their bytes.
type link struct {
	listener net.Listener
	mode     atomic.Int32
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newLink(t *testing.T, to string) *link {
	l := &link{listener: testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t), conns: make(map[net.Conn]bool)}
	l.open.Go(func() {
		for {
			in, err := l.listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil || mode(l.mode.Load()) == breaks {
				_ = in.Close()
				if err == nil {
					_ = out.Close()
				}
				continue
			}
			l.mu.Lock()
			l.conns[in], l.conns[out] = true, true
			l.mu.Unlock()
			l.open.Go(func() { l.pass(out, in, back) })
			l.open.Go(func() { l.pass(in, out, forth) })
		}
	})
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.cut()
		l.open.Wait()
	})
	return l
}

// address returns the address of the link.
func (l *link) address() string { return l.listener.Addr().String() }

// pass copies one direction of a connection; unless is the mode in which it is dropped.
func (l *link) pass(to, from net.Conn, unless mode) {
	defer func() {
		_ = to.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, from)
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		switch m := mode(l.mode.Load()); m {
		case delays:
			<-time.After(50 * time.Millisecond)
		case swallow, unless:
			n = 0
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// set changes the mode of the link. A repair ends its connections, since some of their bytes are lost.
func (l *link) set(m mode) {
	l.mode.Store(int32(m))
	if m == breaks || m == passes {
		l.cut()
	}
}

// cut ends all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}
