package state

import (
	"fmt"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// Names is what can be named, as the kernel sees it.
type Names struct {
	Space   *uri.Space
	Adopted kernel.Identities
}

var _ kernel.Names = Names{}

// openRoot makes the space of root and mounts, and opens their directories: one that is not there stops the start.
func openRoot(cfg *config.Config) (*uri.Space, *rootfs.Tree, error) {
	space, err := cfg.Space()
	if err != nil {
		return nil, nil, err
	}
	tree, err := rootfs.Open(space)
	if err != nil {
		return nil, nil, fmt.Errorf("root and mounts: %w", err)
	}
	return space, tree, nil
}

// Resolve implements kernel.Names.
func (n Names) Resolve(name, base string) (string, *fault.Fault) {
	place, err := n.Space.Resolve(name, base)
	if err != nil {
		return "", fault.Of(err)
	}
	return place.URI, nil
}

// Base implements kernel.Names.
func (n Names) Base(pid int64, origin string) string {
	if identity := n.Adopted.Adopted(pid, origin); identity != nil {
		return identity.URI
	}
	return ""
}
