package daemon

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
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
func (n names) Resolve(name, base string) (string, *schema.Error) {
	place, err := n.space.Resolve(name, base)
	if err != nil {
		return "", nameFault(err)
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

// nameFault is the error of a name that means nothing, as it goes over the wire.
func nameFault(err error) *schema.Error {
	var fault *uri.NameError
	switch {
	case !errors.As(err, &fault):
		return schema.AsError(err)
	case errors.Is(err, uri.ErrNoRoot):
		return schema.Errorf(schema.NotFound, "no mount holds %s and there is no root: start the kernel with --root, or mount what holds it", fault.Name)
	}
	field := "uri"
	if fault.Base {
		field = "base"
	}
	return kernel.Invalid(field, "%q cannot be resolved: %v", fault.Name, fault.Err)
}
