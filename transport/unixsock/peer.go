package unixsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// ErrNoCredentials means that no system vouches for the peer: the platform cannot tell, or the
// connection is not a Unix socket.
var ErrNoCredentials = errors.New("peer credentials are not available")

// PeerOf asks the system who is at the other end of conn. If that is neither our user nor root, it
// returns an error with the id fault.AuthPeer, and the Peer.
func PeerOf(conn net.Conn) (access.Peer, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return access.Peer{}, ErrNoCredentials
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return access.Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	var peer access.Peer
	var sysErr error
	err = raw.Control(func(fd uintptr) { peer, sysErr = credentials(int(fd)) })
	if err := errors.Join(err, sysErr); err != nil {
		return access.Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	return peer, judgePeer(peer)
}

// judgePeer admits our own user, and root, which could read our memory anyway.
func judgePeer(peer access.Peer) error {
	if peer.UID != 0 && peer.UID != os.Geteuid() {
		return fault.AuthPeer.New("the other end (process %d) belongs to user %d, not to user %d", peer.PID, peer.UID, os.Geteuid()).
			With("uid", strconv.Itoa(peer.UID))
	}
	return nil
}
