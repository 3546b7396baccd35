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

// Hydrate returns the skills and tools that the front matter of a resource lists, each in its order. Name
// and description are those of the list, else those of the front matter of a skill or of the manifest of a tool
// (<tool>.json). The name defaults to the last segment of the path. If a listed resource is missing or refused by the policy,
// Hydrate returns an error.
func (p *Pipeline) Hydrate(ctx context.Context, l *Loaded, now time.Time) (*schema.HydrateOutput, error) {
	out := &schema.HydrateOutput{URI: l.URI, Skills: []schema.HydratedItem{}, Tools: []schema.HydratedItem{}}
	for _, list := range []struct {
		of   []Reference
		look func(context.Context, Reference, time.Time) (schema.HydratedItem, error)
		to   *[]schema.HydratedItem
	}{{l.Skills, p.skill, &out.Skills}, {l.Tools, p.tool, &out.Tools}} {
		for _, r := range list.of {
			item, err := list.look(ctx, r, now)
			if err != nil {
				return nil, fault.Prefix(err, "hydrate %s", r.URI)
			}
			*list.to = append(*list.to, item)
		}
	}
	return out, nil
}

func (p *Pipeline) skill(ctx context.Context, r Reference, now time.Time) (item schema.HydratedItem, err error) {
	l, err := p.Run(ctx, Request{URI: r.URI, Now: now})
	if err != nil {
		return item, err
	}
	return schema.HydratedItem{
		URI: l.URI, Digest: l.Digest, Name: cmp.Or(r.Name, l.Name, path.Base(l.URI)), Description: cmp.Or(r.Description, l.Description),
	}, nil
}

// tool returns the item of a tool. It reads the manifest even if the list has name and description, because only the manifest has the
// input schema. The tool itself need not be text.
func (p *Pipeline) tool(ctx context.Context, r Reference, now time.Time) (item schema.HydratedItem, err error) {
	f, err := p.fetchFrom(ctx, r.URI, "", cmp.Or(p.MaxToolBytes, DefaultMaxToolBytes))
	if err != nil {
		return item, err
	}
	if _, err := p.Validate(f, "", now); err != nil {
		return item, err
	}
	beside, err := p.Space.Resolve(f.URI+".json", "")
	if err != nil {
		return item, err
	}
	m := &schema.ToolManifest{}
	raw, err := p.read(ctx, beside, schema.MaxEventLine)
	switch {
	case err == nil:
		var invalid *fault.Fault
		if m, invalid = schema.DecodeToolManifest(raw); invalid != nil {
			return item, fault.ToolBadManifest.New("read manifest %s: %s", beside.URI, invalid.Text())
		}
	case !errors.Is(err, fault.FileNotFound):
		return item, err
	}
	item = schema.HydratedItem{
		URI: f.URI, Digest: f.Digest, Name: cmp.Or(r.Name, m.Name, path.Base(f.URI)), Description: cmp.Or(r.Description, m.Description),
	}
	if schema.ValidWithin(m.Input, schema.MaxKeptDepth) { // omit a schema that is missing or nested too deep
		item.Input = m.Input
	}
	return item, nil
}
