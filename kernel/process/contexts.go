package process

import (
	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// MaxContexts bounds the content that the processes of one origin have adopted, in bytes, front matter included. The same
// content counts once, however many have adopted it.
const MaxContexts = 64 << 20

// contexts is the context store (ABI 8): what the living processes have adopted, by origin. A content is kept as long as a
// living process, or the operator of its origin, has its identity; so its end needs no notice.
type contexts struct {
	kept     *btree.Map[string, *content] // by place
	bytes    map[string]int64             // by origin
	operator *identities                  // of the operator; replaced, never changed in place
}

type identities = map[string]*schema.Identity // by origin

// place is where a content is kept: one origin's lie side by side, and none of them is found by the name of another's.
// No id has the byte between the two.
func place(origin, id string) string { return origin + "\x00" + id }

// content is immutable but for the number of its holders.
type content struct {
	frontMatter, text string
	holders           int64
}

func (c *content) size() int64 { return int64(len(c.frontMatter) + len(c.text)) }

func newContexts() *contexts {
	return &contexts{kept: btree.NewMap[string, *content](0), bytes: make(map[string]int64), operator: &identities{}}
}

func (c *contexts) get(origin, id string) (*content, bool) { return c.kept.Get(place(origin, id)) }

// room reports whether a content fits beside what is kept of its origin.
func (c *contexts) room(origin string, in *schema.Adoption) bool {
	_, kept := c.get(origin, in.Identity.ContextID)
	return kept || c.bytes[origin]+int64(len(in.FrontMatter)+len(in.Content)) <= MaxContexts
}

// hold keeps a content for one holder more.
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

// release lets one holder go, and the content with the last.
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

// restore adds what a chunk of a snapshot has.
func (c *contexts) restore(from *chunk) {
	for origin, identity := range from.Operator {
		(*c.operator)[origin] = &identity // nobody has seen it yet
	}
	if k := from.Context; k != nil {
		held := &content{frontMatter: k.FrontMatter, text: k.Content, holders: k.Holders}
		c.kept.Set(place(k.Origin, k.ID), held)
		c.bytes[k.Origin] += held.size()
	}
}
