package daemon

import (
	"fmt"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
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

// nobody has adopted nothing.
type nobody struct{}

func (nobody) Adopted(int64, string) *schema.Identity { return nil }

// PolicyForms are the forms in which a kernel with the configuration of that path judges names and addresses, without the kernel: nobody
// has adopted a resource that names could stand beside.
func PolicyForms(path string, getenv func(string) string) (policy.Forms, error) {
	cfg := config.Default(getenv, 0, "/")
	if err := cfg.Load(path, false, getenv); err != nil {
		return policy.Forms{}, err
	}
	space, err := cfg.Space()
	if err != nil {
		return policy.Forms{}, err
	}
	return policy.Forms{URL: fetch.Normal, Names: names{space, nobody{}}}, nil
}
