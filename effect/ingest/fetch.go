package ingest

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// Fetched has the bytes of a resource, which are not validated yet.
type Fetched struct {
	URI       string // canonical
	Remote    bool
	Data      []byte
	Digest    string // see rootfs.Digest
	Signature []byte // content of the signature file, or nil
}

// Fetch reads the resource that name refers to, relative to base, and its signature file. The error is a
// fault of uri or rootfs, IngestNoWeb, or the error of Pipeline.Web.
func (p *Pipeline) Fetch(ctx context.Context, name, base string) (*Fetched, error) {
	return p.fetchFrom(ctx, name, base, cmp.Or(p.MaxBytes, DefaultMaxBytes))
}

func (p *Pipeline) fetchFrom(ctx context.Context, name, base string, most int64) (*Fetched, error) {
	at, err := p.Space.Resolve(name, base)
	if err != nil {
		return nil, err
	}
	f := &Fetched{URI: at.URI, Remote: at.Remote()}
	if f.Data, err = p.read(ctx, at, most); err != nil {
		return nil, fault.Prefix(err, "fetch")
	}
	f.Digest = rootfs.Digest(f.Data)
	if at.Folder || strings.Contains(at.URI, "?") {
		return f, nil // it can have no signature file
	}
	beside, err := p.Space.Resolve(at.URI+".sig", "")
	if err != nil {
		return f, nil // a canonical name with .sig appended fails only for its length
	}
	f.Signature, err = p.read(ctx, beside, access.MaxArmor)
	if err != nil && !errors.Is(err, fault.FileNotFound) {
		return nil, fault.Prefix(err, "fetch: signature")
	}
	return f, nil
}

// read returns the content at a place, at most most bytes.
func (p *Pipeline) read(ctx context.Context, at uri.Place, most int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if !at.Remote() {
		f, err := p.Files.Read(at, most)
		return f.Data, err
	}
	if p.Web == nil {
		return nil, fault.IngestNoWeb.New("%s: nothing is fetched from the web here", at.URI)
	}
	data, err := p.Web(ctx, at.URI, most)
	if err == nil && int64(len(data)) > most {
		err = tooLarge(most)
	}
	if err != nil {
		return nil, fault.Prefix(err, "%s", at.URI)
	}
	return data, nil
}

func tooLarge(most int64) *fault.Fault {
	return fault.FileTooLarge.New("the file is too large: more than %d bytes", most)
}
