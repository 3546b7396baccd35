// Package bus configures the NATS server that connects kernels.
package bus

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
)

// maxSubscriptions is how many subscriptions a connection may have. A kernel has one, and one for each request that it awaits.
const maxSubscriptions = 10_000

// Settings are those of one node of the bus.
type Settings struct {
	Listen   string                 // host:port; port 0 chooses one
	Dir      string                 // of the streams
	Members  *access.AuthorizedKeys // kernels and nodes; those whose line has expired are left out at start and reload
	Payload  int32                  // the longest message in bytes; 0: cluster.MaxMessage
	MaxBytes int64                  // of all streams on disk; 0: NATS chooses a limit from the free disk space

	Cert, Key string // files for TLS with kernels; "": none

	Name   string   // of the node in a cluster of nodes; "": there is one node
	Peers  string   // host:port at which the node listens for other nodes; port 0 chooses one
	Routes []string // host:port of other nodes
}

// Options returns the server's options. The server syncs each write to a stream before it acknowledges it; by default NATS
// syncs every two minutes.
func (s Settings) Options() (*server.Options, error) {
	host, port, err := address(s.Listen, "--listen")
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		Host: host, Port: random(port), ServerName: s.Name, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: s.Dir, SyncAlways: true, JetStreamMaxStore: s.MaxBytes, JetStreamMaxMemory: -1,
		MaxPayload: cmp.Or(s.Payload, cluster.MaxMessage), MaxSubs: maxSubscriptions, WriteDeadline: 10 * time.Second, NoSystemAccount: s.Name == "",
	}
	members := current(s.Members.Keys())
	for _, member := range members {
		user, err := cluster.User(member.Key)
		if err != nil {
			return nil, err
		}
		o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: user, Permissions: Permissions(member.Kernel, members)})
	}
	if s.Cert != "" {
		if o.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: s.Cert, KeyFile: s.Key}); err != nil {
			return nil, fmt.Errorf("use certificate: %w", err)
		}
		o.TLS, o.TLSTimeout = true, 5
	}
	if s.Name != "" {
		if err := s.setLinks(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// random returns the port for the server's options, in which 0 is none.
func random(port int) int {
	if port == 0 {
		return server.RANDOM_PORT
	}
	return port
}

func address(text, flag string) (string, int, error) {
	host, digits, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, fmt.Errorf("%s is HOST:PORT, not %q", flag, text)
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%s is HOST:PORT, not %q", flag, text)
	}
	return host, int(port), nil
}

// Permissions are what a kernel may do on the bus: append to its own stream, read all streams, send requests to other members, and
// answer those that it gets. No kernel may delete or change what is in a stream. The bus creates the streams: a kernel may request its own.
//
// Answers go to the inboxes of members. NATS can permit a user to answer wherever a request says (allow_responses), but a kernel can
// send a request to itself: it could publish to every subject, those of JetStream's interface and of other kernels' streams too.
func Permissions(kernel string, members []*access.AuthorizedKey) *server.Permissions {
	api := "$JS.API."
	publish := []string{
		cluster.JournalSubject(kernel), cluster.RequestSubject("*"), cluster.MakeSubject("*", kernel),
		api + "INFO", api + "STREAM.NAMES", api + "STREAM.LIST", api + "STREAM.INFO.*", api + "STREAM.MSG.GET.*",
		cluster.LeaseSubject(kernel),
	}
	for _, m := range members { // several lines may name one kernel
		if inboxes := inboxesOf(m.Kernel); !slices.Contains(publish, inboxes) {
			publish = append(publish, inboxes)
		}
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: []string{cluster.RequestSubject(kernel), inboxesOf(kernel)}},
	}
}

func inboxesOf(kernel string) string { return cluster.InboxPrefix(kernel) + ".>" }
