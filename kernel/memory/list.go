package memory

import (
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// defaultLimit is how many keys a page of Memory.List holds where the caller names no limit.
const defaultLimit = 100

// list answers Memory.List. A cursor is the last key of the page before, so it tells nothing that the caller has not
// seen, and stays good whatever is stored meanwhile.
func (d *Domain) list(call *kernel.Call, in *schema.MemoryListInput) []byte {
	p := &page{limit: defaultLimit}
	if in.Limit != nil {
		p.limit = int(*in.Limit)
	}
	if in.Prefix != nil {
		p.prefix = trim(*in.Prefix)
	}
	if in.Cursor != nil {
		p.after = trim(*in.Cursor)
	}
	p.data = append(p.data, `{"keys":[`...)
	if inProc(p.prefix) {
		d.eachProc(call, p.add)
	} else {
		d.spaces[call.Origin].ascend(max(p.prefix, p.after), func(key, _ string) bool { return p.add(key) })
	}
	return p.end()
}

// page is an answer to Memory.List in the making.
type page struct {
	prefix string
	after  string // keys up to this one were on earlier pages; "" for the first page
	limit  int

	data  []byte
	count int
	last  string
	more  bool // there are keys that did not fit
}

// add takes the next key in ascending order, and reports whether it wants another.
func (p *page) add(key string) bool {
	if !strings.HasPrefix(key, p.prefix) {
		return key < p.prefix // keys with the prefix lie together: after them none is left
	}
	if key <= p.after {
		return true
	}
	// Room is left for the cursor, which repeats a key no longer than this one and the one before it.
	if p.count == p.limit || len(p.data)+written(key)+max(written(key), written(p.last)) > kernel.MaxData {
		p.more = true
		return false
	}
	if p.count > 0 {
		p.data = append(p.data, ',')
	}
	p.data = schema.AppendString(p.data, "/"+key)
	p.last = key
	p.count++
	return true
}

// end finishes the answer. A page that is not the last holds a key: the longest leaves room for many.
func (p *page) end() []byte {
	data := append(p.data, ']')
	if p.more {
		data = schema.AppendString(append(data, `,"next":`...), "/"+p.last)
	}
	return append(data, '}')
}

// written is the most bytes that a key takes in an answer: a key has no control characters, so none of its bytes becomes
// more than two. The rest is slash, quotes, comma, and the name of the cursor.
func written(key string) int { return 2*len(key) + 16 }
