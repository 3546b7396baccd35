package process

import (
	"sync/atomic"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// pageSize is how many PIDs share a page. PIDs are dense, so a page is found by a division, and a reader needs two
// loads.
const pageSize = 256

type page [pageSize]atomic.Pointer[schema.Descriptor]

// Processes is the process table as other domains see it. Process may be called at any time from any goroutine; the
// domain calls the rest.
type Processes struct {
	shown    atomic.Pointer[pages]
	operator atomic.Pointer[identities] // identities of the operator
	served   atomic.Pointer[[]served]

	table   *table  // the table of the last Publish; if it is not the domain's, anything may have changed since
	touched []int64 // PIDs whose descriptor may have changed since
}

// pages is a view up to a PID. Its slice is never changed in place: a longer one may share its array beyond the end.
type pages struct {
	next int64
	list []*page // nil if all processes of a page are forgotten; the page of next exists
}

var (
	_ kernel.Processes  = (*Processes)(nil)
	_ kernel.Identities = (*Processes)(nil)
)

// Process implements kernel.Processes: the descriptor of pid as last published. Of a process that ended before the
// latest Remembered ones it has only PID and state.
func (v *Processes) Process(pid int64) *schema.Descriptor {
	p := v.shown.Load()
	if pid < 1 || pid >= p.next {
		return nil
	}
	if page := p.list[pid/pageSize]; page != nil {
		if d := page[pid%pageSize].Load(); d != nil {
			return d
		}
	}
	return forgotten(pid)
}

// Publish implements kernel.Publisher.
func (d *Domain) Publish() {
	v := d.view
	v.operator.Store(d.contexts.operator)
	if list := d.abroad.served; len(list) > 0 || v.served.Load() != nil {
		v.served.Store(&list)
	}
	if v.table != d.table {
		v.publishAll(d.table)
	} else if len(v.touched) > 0 {
		v.publishTouched()
	}
}

func (v *Processes) publishAll(t *table) {
	fresh := &pages{next: t.next, list: make([]*page, t.next/pageSize+1)}
	fresh.list[t.next/pageSize] = new(page) // the next process is not forgotten yet
	t.processes.Scan(func(pid int64, p *schema.Descriptor) bool {
		at := &fresh.list[pid/pageSize]
		if *at == nil {
			*at = new(page)
		}
		(*at)[pid%pageSize].Store(p)
		return true
	})
	v.shown.Store(fresh)
	v.table, v.touched = t, nil
}

// publishTouched publishes new descriptors first, and then their number, so that readers find no
// gap.
func (v *Processes) publishTouched() {
	t, now := v.table, v.shown.Load()
	list, emptied := now.list, false
	for int64(len(list)) <= t.next/pageSize {
		list = append(list, new(page))
	}
	for _, pid := range v.touched {
		at := list[pid/pageSize]
		if p, ok := t.processes.Get(pid); ok {
			at[pid%pageSize].Store(p)
		} else if at != nil {
			at[pid%pageSize].Store(nil)
			emptied = emptied || pid%pageSize == pageSize-1
		}
	}
	if emptied {
		list = v.compact(list)
	}
	if t.next != now.next || emptied {
		v.shown.Store(&pages{next: t.next, list: list})
	}
	v.touched = v.touched[:0]
}

// compact returns a copy of list without empty pages. It is called at most once a page.
func (v *Processes) compact(list []*page) []*page {
	kept := make([]*page, len(list))
	for i, at := range list {
		if at != nil && (int64(i) >= v.table.next/pageSize || at.used()) {
			kept[i] = at
		}
	}
	return kept
}

func (p *page) used() bool {
	for i := range p {
		if p[i].Load() != nil {
			return true
		}
	}
	return false
}

// touch records that the descriptor of pid may have changed. A replay touches many before it publishes: then all is
// published.
func (v *Processes) touch(pid int64) {
	const most = 16 * pageSize
	switch {
	case pid == 0 || v.table == nil:
	case len(v.touched) == most:
		v.all()
	default:
		v.touched = append(v.touched, pid)
	}
}

// all records that anything may have changed.
func (v *Processes) all() { v.table, v.touched = nil, nil }
