// Package testbus runs a bus in the process of a test.
package testbus

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/testkit"
)

// Bus is a bus that can be stopped, and started again at the same address. The test's end stops it.
type Bus struct {
	Dir     string
	Members string // the text of its members file

	Cert, Key string // files for TLS from the next start on; "": none
	Payload   int32  // the longest message in bytes from the next start on; 0: that of pwos-bus

	t    testing.TB
	node *bus.Node
	addr string
}

// Start runs a bus with these members.
func Start(t testing.TB, members ...string) *Bus {
	t.Helper()
	b := &Bus{Dir: testkit.Dir(t), Members: strings.Join(members, "\n"), t: t, addr: "127.0.0.1:0"}
	b.Restart()
	t.Cleanup(b.Stop)
	return b
}

// Restart starts the bus again at the same address.
func (b *Bus) Restart() {
	b.t.Helper()
	// A process that another test is starting has a copy of the old listener until it runs its program.
	testkit.Eventually(b.t, b.addr+" is free", func() bool {
		l, err := net.Listen("tcp", b.addr)
		return err == nil && l.Close() == nil
	})
	s := bus.Settings{Listen: b.addr, Dir: b.Dir, Cert: b.Cert, Key: b.Key, Payload: b.Payload, Members: access.ParseMembers([]byte(b.Members), time.UTC)}
	b.node = testkit.Value(bus.Start(s, slog.New(slog.DiscardHandler)))(b.t)
	b.addr = b.node.Addr().String()
}

// Stop stops the bus if it runs.
func (b *Bus) Stop() {
	if b.node != nil {
		b.node.Close()
		b.node = nil
	}
}

// URL is its address.
func (b *Bus) URL() string {
	if b.Cert != "" {
		return "tls://" + b.addr
	}
	return "nats://" + b.addr
}

// Key creates the host key of a kernel in its state directory, and returns it with the line of a members file.
func Key(t testing.TB, stateDir, name, options string) (*access.HostKey, string) {
	t.Helper()
	key := testkit.Value(access.OpenHostKey(stateDir))(t)
	if options != "" {
		options = "," + options
	}
	return key, `kernel="` + name + `"` + options + " " + key.Public()
}
