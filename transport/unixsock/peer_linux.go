package unixsock

import (
	"golang.org/x/sys/unix"
)

// credentials reads what the system noted of the other end when it connected, or began to listen (unix(7)).
func credentials(fd int) (Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	return Peer{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid)}, nil
}
