package process

import (
	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// MaxContexts bounds the content that the processes of one origin have adopted, in bytes, including front matter. The
// same content counts once.
const MaxContexts = 64 << 20

// contexts is the context store (ABI 8): what the living processes have adopted, by origin. A content is kept as long
// as a living process, or the operator of its origin, has its identity, so its end needs no record.
type contexts struct {
	kept     *btree.Map[string, *content] // by place
	bytes    map[string]int64             // by origin
	operator *identities                  // of the operator; copied on change
}

type identities = map[string]*schema.Identity // by origin

// place is the key of a content: those of an origin are adjacent, and no other origin's name finds them. No id
// contains the separator.
func place(origin, id string) string { return origin + "\x00" + id }

// content is immutable except for the number of its holders.
type content struct {
	frontMatter, text string
	holders           int64
}

func (c *content) size() int64 { return int64(len(c.frontMatter) + len(c.text)) }

func newContexts() *contexts {
	return &contexts{kept: btree.NewMap[string, *content](0), bytes: make(map[string]int64), operator: &identities{}}
}

func (c *contexts) get(origin, id string) (*content, bool) { return c.kept.Get(place(origin, id)) }

// room reports whether a content fits the bound of its origin.
func (c *contexts) room(origin string, in *schema.Adoption) bool {
	_, kept := c.get(origin, in.Identity.ContextID)
	return kept || c.bytes[origin]+int64(len(in.FrontMatter)+len(in.Content)) <= MaxContexts
}

// hold adds a holder of a content.
func (c *contexts) hold(origin string, in *schema.Adoption) {
	held := &content{frontMatter: in.FrontMatter, text: in.Content, holders: 1}
	if kept, ok := c.get(origin, in.Identity.ContextID); ok {
		again := *kept
		again.holders++
		held = &again
	} else {
		c.bytes[origin] += held.size()
	}
	c.kept.Set(place(origin, in.Identity.ContextID), held)
}

// release removes a holder, and the content with the last one.
func (c *contexts) release(origin string, of *schema.Identity) {
	if of == nil {
		return
	}
	at := place(origin, of.ContextID)
	kept, ok := c.kept.Get(at)
	switch {
	case !ok:
	case kept.holders > 1:
		fewer := *kept
		fewer.holders--
		c.kept.Set(at, &fewer)
	default:
		c.kept.Delete(at)
		if c.bytes[origin] -= kept.size(); c.bytes[origin] == 0 {
			delete(c.bytes, origin)
		}
	}
}

// restore adds the contents of a snapshot's chunk.
func (c *contexts) restore(from *record) {
	for origin, identity := range from.Operator {
		(*c.operator)[origin] = &identity // not published yet
	}
	if k := from.Context; k != nil {
		held := &content{frontMatter: k.FrontMatter, text: k.Content, holders: k.Holders}
		c.kept.Set(place(k.Origin, k.ID), held)
		c.bytes[k.Origin] += held.size()
	}
}
