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

// ErrNoCredentials means that the system does not identify the peer: the platform does not support it, or the
// connection is not a Unix socket.
var ErrNoCredentials = errors.New("peer credentials are not available")

// PeerOf returns the process at the other end of conn, as the system identifies it. If that belongs neither to this
// user nor to root, it also returns a fault.AuthPeer.
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
	return peer, checkPeer(peer)
}

// checkPeer returns a fault.AuthPeer unless the peer belongs to this user, or to root, which could read this process's
// memory anyway.
func checkPeer(peer access.Peer) error {
	if peer.UID != 0 && peer.UID != os.Geteuid() {
		return fault.AuthPeer.New("the other end (process %d) belongs to user %d, not to user %d", peer.PID, peer.UID, os.Geteuid()).
			With("uid", strconv.Itoa(peer.UID))
	}
	return nil
}
