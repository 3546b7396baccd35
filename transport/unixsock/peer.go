package unixsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/promptware-os/pwos/schema/fault"
)

// Peer is the process at the other end of a connection, as the system vouches for it: who connected, or who listened.
type Peer struct {
	PID int // 0 where the system does not say
	UID int
	GID int

	Identity Identity // what it proved in the prologue
	// Agent is the process of the kernel whose program it belongs to, where Identify of the Server's settings finds that
	// out; 0: no program that the kernel hosts. What it proves besides does not count.
	Agent int64
}

// ErrNoCredentials says that nobody vouches for the peer: the platform has no way to ask, or the connection is no Unix
// socket.
var ErrNoCredentials = errors.New("peer credentials are not available")

// PeerOf asks the system who is at the other end of conn. It returns an error with the id fault.AuthPeer, with the Peer, where that is
// neither the user we run as nor root.
func PeerOf(conn net.Conn) (Peer, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{}, ErrNoCredentials
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	var peer Peer
	var sysErr error
	err = raw.Control(func(fd uintptr) { peer, sysErr = credentials(int(fd)) })
	if err := errors.Join(err, sysErr); err != nil {
		return Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	return peer, judgePeer(peer)
}

// judgePeer lets in our own user and root, which could read our memory anyway.
func judgePeer(peer Peer) error {
	if peer.UID != 0 && peer.UID != os.Geteuid() {
		return fault.AuthPeer.New("the other end (process %d) belongs to user %d, not to user %d", peer.PID, peer.UID, os.Geteuid()).
			With("uid", strconv.Itoa(peer.UID))
	}
	return nil
}
