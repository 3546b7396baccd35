//go:build !linux && !darwin

package unixsock

import "github.com/promptware-os/pwos/access"

// credentials is not implemented: BRIDGE 3 requires Linux and macOS only. Every connection is refused.
func credentials(int) (access.Peer, error) { return access.Peer{}, ErrNoCredentials }
