package memory

import (
	"context"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// defaultLimit is the number of keys on a page of Memory.List unless the caller asks for another.
const defaultLimit = 100

// list returns a page of keys. A cursor is the last key of the previous page: it reveals nothing
// new, and stays valid whatever is stored later.
func (d *Domain) list(call *kernel.Call, in *schema.MemoryListInput) (schema.MemoryListOutput, error) {
	p := &page{limit: defaultLimit, size: len(`{"keys":[]}`)}
	if in.Limit != nil {
		p.limit = int(*in.Limit)
	}
	p.ends = make([]int, 0, p.limit)
	if in.Prefix != nil {
		p.prefix = trim(*in.Prefix)
	}
	if in.Cursor != nil {
		p.after = trim(*in.Cursor)
	}
	if !inProc(p.prefix) {
		d.spaces[call.Origin].ascend(max(p.prefix, p.after), func(key, _ string) bool { return p.add(key) })
		return p.output(), nil
	}
	last := lastPID(d.processes)
	if last <= procAtOnce {
		return p.procs(context.Background(), d.processes, call, last)
	}
	processes := d.processes
	kernel.Compute(call, func(ctx context.Context) (schema.MemoryListOutput, error) { return p.procs(ctx, processes, call, last) })
	return schema.MemoryListOutput{}, nil
}

// procAtOnce is how many processes a list of proc/ reads on the actor. More are read from the view on a goroutine.
const procAtOnce = 128

// procs is a page of the keys below proc/ of a kernel whose last PID is given.
func (p *page) procs(ctx context.Context, processes kernel.Processes, call *kernel.Call, last int64) (schema.MemoryListOutput, error) {
	eachProc(ctx, processes, call, last, p.add)
	return p.output(), ctx.Err()
}

// page collects an answer to Memory.List.
type page struct {
	prefix string
	after  string // the last key of the page before; "" for the first page
	limit  int

	text []byte // the keys with their slashes, concatenated
	ends []int  // of each key in text
	size int    // bytes that the answer may have
	last string
	more bool // some keys did not fit
}

// add takes the next key in ascending order, and reports whether it wants another.
func (p *page) add(key string) bool {
	if !strings.HasPrefix(key, p.prefix) {
		return key < p.prefix // keys with the prefix are adjacent: no further ones follow
	}
	if key <= p.after {
		return true
	}
	// Leave room for the cursor, which repeats this key or the one before it.
	own := written(key)
	if len(p.ends) == p.limit || p.size+own+len(`"next":`)+max(own, written(p.last)) > kernel.MaxData {
		p.more = true
		return false
	}
	p.text = append(append(p.text, '/'), key...)
	p.ends = append(p.ends, len(p.text))
	p.size += own
	p.last = key
	return true
}

// output returns the answer. A page that is not the last has a key: the longest leaves room for many.
func (p *page) output() schema.MemoryListOutput {
	out := schema.MemoryListOutput{Keys: make([]string, len(p.ends))}
	text, start := string(p.text), 0 // one string for all keys: one allocation a page
	for i, end := range p.ends {
		out.Keys[i] = text[start:end]
		start = end
	}
	if p.more {
		out.Next = "/" + p.last
	}
	return out
}

// written is the length of a key in an answer, with slash, quotes and comma: a key has no control characters, so JSON
// escapes only these two.
func written(key string) int {
	return len(key) + strings.Count(key, `"`) + strings.Count(key, `\`) + len(`"/",`)
}
