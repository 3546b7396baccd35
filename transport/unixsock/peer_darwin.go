package unixsock

import (
	"golang.org/x/sys/unix"
)

// credentials reads what the system noted of the other end; the process number is asked for separately.
func credentials(fd int) (Peer, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return Peer{}, err
	}
	peer := Peer{PID: pid, UID: int(cred.Uid)}
	if cred.Ngroups > 0 {
		peer.GID = int(cred.Groups[0]) // the effective group stands first
	}
	return peer, nil
}
