package unixsock

import (
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/access"
)

// credentials returns the user of the other end, and its PID, which is a separate option.
func credentials(fd int) (access.Peer, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return access.Peer{}, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return access.Peer{}, err
	}
	peer := access.Peer{PID: pid, UID: int(cred.Uid)}
	if cred.Ngroups > 0 {
		peer.GID = int(cred.Groups[0]) // the effective group is the first
	}
	return peer, nil
}
