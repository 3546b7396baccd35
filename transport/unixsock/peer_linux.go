package unixsock

import (
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/access"
)

// credentials returns the process at the other end, as of when it connected or began to listen (unix(7)).
func credentials(fd int) (access.Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return access.Peer{}, err
	}
	return access.Peer{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid)}, nil
}
