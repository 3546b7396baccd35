package ingest

import (
	"cmp"
	"context"
	"errors"
	"path"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Kind tells what a resource was listed as.
type Kind string

// The kinds.
const (
	Skill Kind = "skill"
	Tool  Kind = "tool"
)

// Item is a skill or a tool, as far as who may use it has to know.
type Item struct {
	Kind        Kind
	URI         string
	Name        string
	Description string
	Digest      string
	Input       []byte // JSON Schema of a tool's input; nil where it has none
}

// Hydrate returns what the front matter of a resource lists, skills first, each in its order. Name and description are those of
// the list, else of the resource's own front matter, or for a tool of the manifest beside it (<tool>.json); without either
// the last segment of its path is its name. One that is missing, or that the policy does not take, is the error of all.
func (p *Pipeline) Hydrate(ctx context.Context, l *Loaded, now time.Time) ([]Item, error) {
	items := make([]Item, 0, len(l.Skills)+len(l.Tools))
	for _, r := range l.Skills {
		item, err := p.skill(ctx, r, now)
		if err != nil {
			return nil, fault.Prefix(err, "hydrate %s", r.URI)
		}
		items = append(items, item)
	}
	for _, r := range l.Tools {
		item, err := p.tool(ctx, r, now)
		if err != nil {
			return nil, fault.Prefix(err, "hydrate %s", r.URI)
		}
		items = append(items, item)
	}
	return items, nil
}

func (p *Pipeline) skill(ctx context.Context, r Reference, now time.Time) (Item, error) {
	result, err := p.Run(ctx, Request{URI: r.URI, Now: now})
	if err != nil {
		return Item{}, err
	}
	l := result.Loaded
	return Item{
		Kind: Skill, URI: l.URI, Digest: l.Digest, Name: cmp.Or(r.Name, l.Name, path.Base(l.URI)),
		Description: cmp.Or(r.Description, l.Description),
	}, nil
}

// tool needs no text: a tool may be a module. Its manifest is looked for whatever the list says, for the schema.
func (p *Pipeline) tool(ctx context.Context, r Reference, now time.Time) (Item, error) {
	f, err := p.fetch(ctx, r.URI, "", cmp.Or(p.MaxToolBytes, DefaultMaxToolBytes))
	if err != nil {
		return Item{}, err
	}
	v, err := p.Validate(f, "", now)
	if err != nil {
		return Item{}, err
	}
	item := Item{Kind: Tool, URI: f.URI, Digest: v.fetched.Digest, Name: r.Name, Description: r.Description}
	beside, err := p.Space.Resolve(f.URI+".json", "")
	if err != nil {
		return Item{}, err
	}
	raw, err := p.read(ctx, beside, schema.MaxEventLine)
	if err != nil && !errors.Is(err, fault.FileNotFound) {
		return Item{}, err
	}
	if err == nil {
		m, invalid := schema.DecodeToolManifest(raw)
		if invalid != nil {
			return Item{}, fault.ToolBadManifest.New("read manifest %s: %s", beside.URI, invalid.Text())
		}
		item.Name, item.Description, item.Input = cmp.Or(item.Name, m.Name), cmp.Or(item.Description, m.Description), m.Input
	}
	item.Name = cmp.Or(item.Name, path.Base(f.URI))
	return item, nil
}
