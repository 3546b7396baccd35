package confine

import (
	"golang.org/x/sys/unix"
)

// The parts of the machine that Try finds, as bits of its result.
const (
	triedMounts = 1 << iota
	triedOverlay
	triedNetwork
	triedIPC
)

// Try makes each kind of namespace, with what is needed in it, for the calling thread, and returns which of them worked as the
// number that With takes. The caller's goroutine is locked to that thread, which ends with the process. Making a namespace alone proves nothing: some systems let it be made and refuse the mount.
func Try() (tried int) {
	if unix.Unshare(unix.CLONE_NEWNS) == nil {
		for _, dir := range []string{"/usr", "/etc", "/bin"} { // any directory will do
			if !isDir(dir) {
				continue
			}
			hidden, veiled := layer{kind: empty, path: dir}, layer{kind: veil, path: dir, names: []string{"pwos-probe"}}
			if p := (&Plan{Dir: "/dev", layers: []layer{hidden}}); p.build() == nil {
				tried |= triedMounts
				if p.layers[0] = veiled; p.build() == nil {
					tried |= triedOverlay
				}
			}
			break
		}
	}
	if unix.Unshare(unix.CLONE_NEWNET) == nil && loopback() == nil {
		tried |= triedNetwork
	}
	if unix.Unshare(unix.CLONE_NEWIPC) == nil {
		tried |= triedIPC
	}
	return tried
}

// With returns the means of a machine on which Try had this result, in a user namespace of its own or not.
func With(tried int, user bool) Means {
	m := Means{ABI: landlockABI(), Filter: canFilter()}
	m.Mounts, m.Overlay = tried&triedMounts != 0, tried&triedOverlay != 0
	m.Network, m.IPC = tried&triedNetwork != 0, tried&triedIPC != 0
	m.User = user && tried != 0
	return m
}
