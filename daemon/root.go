package daemon

import (
	"fmt"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// names is what can be named, as the kernel sees it.
type names struct {
	space   *uri.Space
	adopted kernel.Identities
}

var _ kernel.Names = names{}

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
func (n names) Resolve(name, base string) (string, *fault.Fault) {
	place, err := n.space.Resolve(name, base)
	if err != nil {
		return "", fault.Of(err)
	}
	return place.URI, nil
}

// Base implements kernel.Names.
func (n names) Base(pid int64, origin string) string {
	if identity := n.adopted.Adopted(pid, origin); identity != nil {
		return identity.URI
	}
	return ""
}
