package confine

import (
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The means that Try finds, as bits of its result.
const (
	triedMounts = 1 << iota
	triedOverlay
	triedNetwork
	triedIPC
	triedLink
	triedPtys
	triedIPv6
	triedPIDs
)

// Try creates each kind of namespace in the calling thread, sets it up, and returns which worked, as an argument of With.
// The caller's goroutine must be locked to that thread, which ends with the process. PID namespaces are tried if this is the first
// process of one. Creating a namespace is not
// sufficient: some systems allow that and refuse the mount.
func Try() (tried int) {
	if unix.Unshare(unix.CLONE_NEWNET) == nil && loopback() == nil && names() == nil {
		tried |= triedNetwork
		if _, err := open([]socket{{netip.AddrPortFrom(netip.IPv6Loopback(), 0), listening}}); err == nil {
			tried |= triedIPv6
		}
		if unix.Unshare(unix.CLONE_NEWNET) == nil && (&Plan{Means: Means{Network: true, Link: true}, Net: NetKernel}).enterNetwork() == nil {
			tried |= triedLink
		}
	}
	if unshare(unix.CLONE_NEWNS) == nil {
		for _, dir := range []string{"/usr", "/etc", "/bin"} { // any directory is suitable
			if !isDir(dir) {
				continue
			}
			hidden, veiled := layer{kind: empty, path: dir}, layer{kind: veil, path: dir, names: []string{"pwos-probe"}}
			if p := (&Plan{Dir: "/dev", layers: []layer{hidden}}); p.build() == nil {
				tried |= triedMounts
				if p.layers[0] = veiled; p.build() == nil {
					tried |= triedOverlay
				}
				if p.layers[0] = (layer{kind: ptys, path: ptysDir}); p.build() == nil && canOpenPty() {
					tried |= triedPtys
				}
				if p := (&Plan{Dir: "/dev", Means: Means{PIDs: true}}); os.Getpid() == 1 && p.build() == nil {
					tried |= triedPIDs
				}
			}
			break
		}
	}
	if unix.Unshare(unix.CLONE_NEWIPC) == nil {
		tried |= triedIPC
	}
	return tried
}

// With returns the means of a machine with this result of Try, in a user namespace or without.
func With(tried int, user bool) Means {
	m := Means{ABI: landlockABI(), Filter: canFilter(), Notify: canNotify()}
	m.Mounts, m.Overlay = tried&triedMounts != 0, tried&triedOverlay != 0
	m.Network, m.IPC, m.Link, m.Ptys = tried&triedNetwork != 0, tried&triedIPC != 0, tried&triedLink != 0, tried&triedPtys != 0
	m.IPv6, m.PIDs = tried&triedIPv6 != 0, tried&triedPIDs != 0
	m.User = user && tried != 0
	return m
}
