package daemon_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// peer is one connection to a daemon.
type peer struct {
	t    testing.TB
	nc   *net.UnixConn
	conn *unixsock.Conn
}

// connect connects to the socket at path, and leaves the prologue to the caller.
func connect(t testing.TB, path string) *peer {
	t.Helper()
	nc, err := unixsock.Dial(testkit.Context(t), path)
	testkit.Must(t, err)
	t.Cleanup(func() { nc.Close() })
	testkit.Must(t, nc.SetDeadline(time.Now().Add(testkit.Patience)))
	conn, err := unixsock.NewConn(nc, schema.OsMessage, 16<<20)
	testkit.Must(t, err)
	return &peer{t: t, nc: nc, conn: conn}
}

// dial is connect, and completes the prologue.
func dial(t testing.TB, path string) *peer {
	t.Helper()
	p := connect(t, path)
	testkit.Must(t, access.ClientPrologue(testkit.Context(t), p.conn, access.AnswerOpen))
	return p
}

// pings returns n frames with payloads counted from 0.
func pings(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"kind":"query","type":"Syscall.Ping","data":{"payload":%d},"metadata":{"id":"p%[1]d","timestamp":0}}`+"\n", i)
	}
	return b.String()
}

const shutdownFrame = `{"kind":"command","type":"Syscall.Shutdown","data":{},"metadata":{"id":"end","timestamp":0}}` + "\n"

func (p *peer) send(text string) {
	p.t.Helper()
	_, err := p.nc.Write([]byte(text))
	testkit.Must(p.t, err)
}

// next returns the next answer.
func (p *peer) next() schema.Message {
	p.t.Helper()
	m, err := p.read()
	testkit.Must(p.t, err)
	return m
}

func (p *peer) read() (schema.Message, error) {
	line, err := p.conn.Next()
	if err != nil {
		return schema.Message{}, err
	}
	m, fault := schema.Decode(line, schema.OsMessage)
	if fault != nil {
		return m, fmt.Errorf("decode answer %q: %w", line, fault)
	}
	return m, nil
}

// wantPing checks that the next answer is that of ping i.
func (p *peer) wantPing(i int) {
	p.t.Helper()
	m := p.next()
	if want := fmt.Sprintf(`{"payload":%d}`, i); m.Kind != schema.KindReply || string(m.Data) != want {
		p.t.Fatalf("got %s %s, want the answer to ping %d", m.Kind, m.Data, i)
	}
}

// wantEnd checks that only the end of the connection follows.
func (p *peer) wantEnd() {
	p.t.Helper()
	if m, err := p.read(); !hungUp(err) {
		p.t.Errorf("got %s %s, %v; want the connection's end", m.Kind, m.Data, err)
	}
}

// hungUp reports whether err is the end of a connection: unread input turns it into a reset.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
