package peercred

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// User returns the user at the other end of a connection.
func User(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, controlErr); err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
