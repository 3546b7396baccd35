package ingest

import (
	"context"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/uri"
)

// Web fetches a canonical https: URL. It returns a body of at most most bytes. Its error is FileNotFound if the server has no such
// resource, and any other error if the fetch fails. It checks the address of the host itself.
type Web func(ctx context.Context, address string, most int64) ([]byte, error)

// Policy defines which proof a resource needs.
type Policy struct {
	// Trusted returns nil if a key is trusted at a time, else the reason. If Trusted is nil, no key is trusted.
	Trusted func(key access.PublicKey, now time.Time) error
	// Proof requires an integrity or a signature for every resource, also below root. A pin is not enough.
	Proof bool
	// Unpinned allows resources of the web without proof.
	Unpinned bool
}

// Pipeline ingests resources of a space. Its fields must be set before use. It may be used concurrently.
type Pipeline struct {
	Space  *uri.Space
	Files  *rootfs.Tree
	Web    Web // nil: web resources are refused
	Policy Policy
	// MaxBytes is the largest size of a resource, MaxToolBytes that of a tool in Hydrate, in bytes; 0 means the default.
	MaxBytes, MaxToolBytes int64
}

// Default limits, in bytes. A tool may be a module that includes the runtime of its language.
const (
	DefaultMaxBytes     = 1 << 20
	DefaultMaxToolBytes = 16 << 20
)

// Request names the resource to ingest.
type Request struct {
	URI       string
	Base      string // the caller's adopted identity, or ""
	Integrity string // "" if the caller gives none
	Now       time.Time
}

// Run runs the phases Fetch, Validate and Load.
func (p *Pipeline) Run(ctx context.Context, r Request) (*Loaded, error) {
	fetched, err := p.Fetch(ctx, r.URI, r.Base)
	if err != nil {
		return nil, err
	}
	valid, err := p.Validate(fetched, r.Integrity, r.Now)
	if err != nil {
		return nil, err
	}
	return p.Load(valid)
}
