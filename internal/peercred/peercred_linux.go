package peercred

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// User returns the user at the other end of a connection.
func User(conn *net.UnixConn) (uid int, err error) {
	peer, err := credentials(conn)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}

// PID returns the process that has made the other end of a connection. It may have ended.
func PID(conn *net.UnixConn) (pid int, err error) {
	peer, err := credentials(conn)
	if err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}

func credentials(conn *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(err, controlErr)
}
