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

// MaxReferences is the largest number of skills, and of tools, that a resource may list.
const MaxReferences = 64

// Loaded is a loaded resource: its front matter and its content.
type Loaded struct {
	// Identity is the identity of a process that adopts the resource. The kernel journals it and returns it in Syscall.GetState.
	schema.Identity
	FrontMatter []byte // one JSON object on one line
	Content     string // the text after the front matter
	Description string // in the front matter, or ""
	Skills      []Reference
	Tools       []Reference
}

// Reference is a resource that front matter lists.
type Reference struct {
	URI         string // resolved relative to the resource that lists it
	Name        string // in the list, or "" for the resource's own name
	Description string
}

// Load parses a resource. In the front matter, name and description must be strings, and skills and tools must be lists. An item of a
// list is the name of a resource, or an object with uri and optionally name and description. Load ignores other members. The error is
// IngestInvalid or IngestNotText.
func (p *Pipeline) Load(v *Valid) (*Loaded, error) {
	l, err := p.parseDocument(v)
	if err != nil {
		return nil, fault.Prefix(err, "load: %s", v.fetched.URI)
	}
	return l, nil
}

func (p *Pipeline) parseDocument(v *Valid) (*Loaded, error) {
	f := &v.fetched
	// Other programs skip a byte order mark, and would find front matter that SplitFrontMatter does not find.
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

// contextID returns an id that depends only on the URI and the digest of a resource, so that a replay and a second ingest return the
// same id. It depends on the URI because relative names in the resource do.
func contextID(uri, digest string) string {
	sum := sha256.Sum256([]byte(uri + "\n" + digest))
	return "ctx-" + hex.EncodeToString(sum[:16])
}

// Recall returns a resource for Hydrate from front matter that was loaded before. It has no content, proof or digest.
func (p *Pipeline) Recall(uri string, frontMatter []byte) (*Loaded, error) {
	l := &Loaded{Identity: schema.Identity{URI: uri}, FrontMatter: frontMatter}
	return l, p.members(l)
}

// members parses the members of the front matter that the kernel uses.
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

// text returns a member that must be a string, or "" if it is missing or null.
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

// decode decodes valid JSON as a T; at is the name of the value in an error.
func decode[T any](raw []byte, at string) (*T, error) {
	v, wrong := schema.TypeOf[T]().Decode(raw)
	if wrong != nil {
		return nil, invalid("%s: %s", at, wrong.Text())
	}
	return v.(*T), nil
}
