//go:build !linux && !darwin

package unixsock

import "github.com/promptware-os/pwos/access"

// credentials is not implemented here: BRIDGE 3 requires Linux and macOS only. So every connection
// is refused rather than admitted unseen.
func credentials(int) (access.Peer, error) { return access.Peer{}, ErrNoCredentials }
