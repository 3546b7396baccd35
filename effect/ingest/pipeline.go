package ingest

import (
	"context"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/uri"
)

// Web fetches an https: address in canonical form. It returns at most most bytes, FileNotFound where
// the server says that there is nothing, and any other error otherwise. It decides itself where it may connect to.
type Web func(ctx context.Context, address string, most int64) ([]byte, error)

// Policy is the proof that a resource needs.
type Policy struct {
	// Trusted returns nil for a key whose signatures count now; its error says why they do not. Nil trusts none.
	Trusted func(key access.PublicKey, now time.Time) error
	// Proof asks for an integrity or a signature, below root as well. A pin is then not enough.
	Proof bool
	// Unpinned takes from the web what nothing answers for.
	Unpinned bool
}

// Pipeline ingests resources of one space. Its fields are set once; it may be used by many goroutines.
type Pipeline struct {
	Space  *uri.Space
	Files  *rootfs.Tree
	Web    Web // nil: nothing is fetched
	Policy Policy
	// MaxBytes bounds one resource, MaxToolBytes a tool that Hydrate looks at; 0 means the default.
	MaxBytes, MaxToolBytes int64
}

// The default bounds, in bytes. A tool may be a module that includes the runtime of its language.
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

// Run does all phases but Adopt; nothing follows one that fails.
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
