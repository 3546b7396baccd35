package process

import (
	"fmt"
	"maps"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// record is a part of a snapshot: first one with Next, then all descriptors by ascending PID, then the programs, then what was
// adopted, then what concerns other kernels.
type record struct {
	Next     int64                       `json:"next,omitzero"`
	Ended    map[string][]int64          `json:"ended,omitzero"` // by origin
	Prepared *schema.ProcessPrepareInput `json:"prepared,omitzero"`
	Events   int64                       `json:"events,omitzero"`   // how many there have been
	Operator map[string]schema.Identity  `json:"operator,omitzero"` // by origin
	Process  *schema.Descriptor          `json:"process,omitzero"`
	PID      int64                       `json:"pid,omitzero"`
	Program  *program                    `json:"program,omitzero"` // of PID
	Context  *keptContext                `json:"context,omitzero"`
	Errand   *schema.Errand              `json:"errand,omitzero"`
	Spawned  []spawnedAbroad             `json:"spawned,omitzero"` // at other kernels
	Served   *served                     `json:"served,omitzero"`
	Errands  int64                       `json:"errands,omitzero"` // how many there have been
}

var records = kernel.RecordsOf[record]()

// keptContext is a content of the context store.
type keptContext struct {
	Origin      string `json:"origin"`
	ID          string `json:"id"`
	FrontMatter string `json:"front_matter"`
	Content     string `json:"content"`
	Holders     int64  `json:"holders"`
}

// Snapshot implements kernel.Domain. The same state always gives the same bytes.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	// The lists of ended processes grow at their end and are cut at their beginning, so a copied
	// slice does not change.
	head := record{Next: d.table.next, Ended: maps.Clone(d.table.ended), Prepared: d.prepared, Events: d.events.count, Errands: d.abroad.last}
	processes, programs, kept := d.table.processes.Copy(), d.table.programs.Copy(), d.contexts.kept.Copy()
	if operator := *d.contexts.operator; len(operator) > 0 {
		head.Operator = make(map[string]schema.Identity, len(operator))
		for origin, identity := range operator {
			head.Operator[origin] = *identity
		}
	}
	elsewhere := d.abroad.copied()
	return records.Writer(func(yield func(record) bool) {
		more := yield(head)
		processes.Scan(func(_ int64, p *schema.Descriptor) bool {
			more = more && yield(record{Process: p})
			return more
		})
		programs.Scan(func(pid int64, p *program) bool {
			more = more && yield(record{PID: pid, Program: p})
			return more
		})
		kept.Scan(func(at string, c *content) bool {
			cut := strings.LastIndexByte(at, 0)
			more = more && yield(record{Context: &keptContext{at[:cut], at[cut+1:], c.frontMatter, c.text, c.holders}})
			return more
		})
		if more {
			elsewhere.save(yield)
		}
	})
}

// Restore implements kernel.Domain.
func (d *Domain) Restore(chunk []byte) error {
	d.view.all()
	return records.Read(chunk, func(r *record) error {
		if r.Next > 0 {
			d.events.count = r.Events
			d.table.next, d.table.ended, d.prepared = r.Next, r.Ended, r.Prepared
			if d.table.ended == nil {
				d.table.ended = make(map[string][]int64)
			}
		}
		d.contexts.restore(r)
		d.abroad.restore(r)
		if p := r.Process; p != nil {
			if p.PID < 1 || p.PID >= d.table.next {
				return fmt.Errorf("pid %d is not within 1 to %d", p.PID, d.table.next-1)
			}
			d.table.put(p)
		}
		if r.Program != nil {
			d.table.programs.Set(r.PID, r.Program)
		}
		return nil
	})
}
