package ingest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// MaxReferences bounds how many skills, and how many tools, one resource may list.
const MaxReferences = 64

// Loaded is a resource that was read: text, with what its front matter says.
type Loaded struct {
	// Identity is what a process becomes by adopting the resource: what the kernel journals and shows in Syscall.GetState.
	schema.Identity
	FrontMatter []byte // one JSON object on one line
	Content     string // what follows the front matter
	Description string // of the front matter, or ""
	Skills      []Reference
	Tools       []Reference
}

// Reference is a resource that front matter lists.
type Reference struct {
	URI         string // resolved relative to the resource that lists it
	Name        string // as listed, or "" to use the resource's own
	Description string
}

// Load reads a resource: its front matter, and what that lists. Of the members name and description
// must be strings, skills and tools lists; each item is the name of a resource, or an object of
// uri, and optionally name and description. Other members are ignored. The error is IngestInvalid,
// or IngestNotText.
func (p *Pipeline) Load(v *Valid) (*Loaded, error) {
	l, err := p.parseDocument(v)
	if err != nil {
		return nil, fault.Prefix(err, "load: %s", v.fetched.URI)
	}
	return l, nil
}

func (p *Pipeline) parseDocument(v *Valid) (*Loaded, error) {
	f := &v.fetched
	// A mark of the byte order would hide the front matter from us and not from others.
	if !utf8.Valid(f.Data) || bytes.IndexByte(f.Data, 0) >= 0 || bytes.HasPrefix(f.Data, []byte("\ufeff")) {
		return nil, fault.IngestNotText.New("the resource is no text in UTF-8")
	}
	l := &Loaded{FrontMatter: []byte("{}"), Identity: schema.Identity{
		ContextID: contextID(f.URI, f.Digest), URI: f.URI, Digest: f.Digest, Proof: v.proof, Signer: v.signer,
	}}
	front, content, fence, err := SplitFrontMatter(f.Data)
	if err != nil {
		return nil, err
	}
	switch fence {
	case '-':
		l.FrontMatter, err = YAML(front)
	case '+':
		l.FrontMatter, err = TOML(front)
	}
	if err != nil {
		return nil, err
	}
	l.Content = string(content)
	return l, p.members(l)
}

// contextID names a content by its bytes and its source, so that a replay, and a second ingest of
// the same, give the same id. The source counts, since relative names in it depend on it.
func contextID(uri, digest string) string {
	sum := sha256.Sum256([]byte(uri + "\n" + digest))
	return "ctx-" + hex.EncodeToString(sum[:16])
}

// Recall makes what was loaded before of its front matter, without its content, proof and digest: what Hydrate needs.
func (p *Pipeline) Recall(uri string, frontMatter []byte) (*Loaded, error) {
	l := &Loaded{Identity: schema.Identity{URI: uri}, FrontMatter: frontMatter}
	return l, p.members(l)
}

// members reads those members of the front matter that the kernel knows.
func (p *Pipeline) members(l *Loaded) error {
	top, err := decode[map[string]schema.Value](l.FrontMatter, "front matter")
	if err != nil {
		return err
	}
	if l.Name, err = text(*top, "name"); err != nil {
		return err
	}
	if l.Description, err = text(*top, "description"); err != nil {
		return err
	}
	if l.Skills, err = p.references(*top, "skills", l.URI); err != nil {
		return err
	}
	l.Tools, err = p.references(*top, "tools", l.URI)
	return err
}

func (p *Pipeline) references(top map[string]schema.Value, member, base string) ([]Reference, error) {
	raw, listed := top[member]
	if !listed || string(raw) == "null" {
		return nil, nil
	}
	items, err := decode[[]schema.Value](raw, member)
	if err != nil {
		return nil, err
	}
	if len(*items) > MaxReferences {
		return nil, invalid("%s lists more than %d", member, MaxReferences)
	}
	list := make([]Reference, 0, len(*items))
	for i, item := range *items {
		r, err := p.reference(item, fmt.Sprintf("%s[%d]", member, i), base)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

func (p *Pipeline) reference(item schema.Value, at, base string) (Reference, error) {
	var r Reference
	if item[0] == '"' {
		name, err := decode[string](item, at)
		if err != nil {
			return r, err
		}
		r.URI = *name
	} else {
		o, err := decode[struct {
			URI         string  `json:"uri"`
			Name        *string `json:"name,omitzero"`
			Description *string `json:"description,omitzero"`
		}](item, at)
		if err != nil {
			return r, err
		}
		r = Reference{URI: o.URI, Name: *cmp.Or(o.Name, new(string)), Description: *cmp.Or(o.Description, new(string))}
	}
	place, err := p.Space.Resolve(r.URI, base)
	if err != nil {
		return r, invalid("%s: %v", at, err)
	}
	r.URI = place.URI
	return r, nil
}

// text returns an optional member that must be a string.
func text(top map[string]schema.Value, member string) (string, error) {
	raw, ok := top[member]
	if !ok || string(raw) == "null" {
		return "", nil
	}
	s, err := decode[string](raw, member)
	if err != nil {
		return "", err
	}
	return *s, nil
}

// decode reads valid JSON as a T; at is for the message.
func decode[T any](raw []byte, at string) (*T, error) {
	v, wrong := schema.TypeOf[T]().Decode(raw)
	if wrong != nil {
		return nil, invalid("%s: %s", at, wrong.Text())
	}
	return v.(*T), nil
}
