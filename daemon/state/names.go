package state

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// Names resolves names of resources for the kernel.
type Names struct {
	Space   *uri.Space
	Adopted kernel.Identities
}

var _ kernel.Names = Names{}

// openRoot creates the name space of root and mounts, and opens their directories. It fails if a directory is missing.
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

// Fetcher returns the fetcher that the configuration describes.
func Fetcher(cfg *config.HTTP, version string) (*fetch.Fetcher, error) {
	o := fetch.Options{UserAgent: "pwos/" + version, Limits: fetch.Limits{WireBytes: cfg.MaxBodyBytes, BodyBytes: cfg.MaxBodyBytes}}
	for _, text := range cfg.Allow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow: %w", err)
		}
		o.Allow = append(o.Allow, prefix)
	}
	for _, text := range cfg.AllowHosts {
		host, err := fetch.ParseHost(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow_hosts: %w", err)
		}
		o.AllowHosts = append(o.AllowHosts, host)
	}
	if cfg.CAFile != "" {
		text, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.ca_file: %w", err)
		}
		if o.RootCAs, err = x509.SystemCertPool(); err != nil {
			o.RootCAs = x509.NewCertPool()
		}
		if !o.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("configuration: http.ca_file: %s holds no certificate", cfg.CAFile)
		}
	}
	return fetch.New(o), nil
}
