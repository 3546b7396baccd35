package process

import (
	"fmt"
	"maps"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// chunkProcesses is how many descriptors a chunk of a snapshot holds.
const chunkProcesses = 256

// chunk is a part of a snapshot: a first one without descriptors, then all descriptors by ascending PID, then the programs, then
// what was adopted.
type chunk struct {
	Next      int64                       `json:"next,omitzero"`
	Ended     map[string][]int64          `json:"ended,omitzero"` // by origin
	Prepared  *schema.ProcessPrepareInput `json:"prepared,omitzero"`
	Events    int64                       `json:"events,omitzero"` // how many there have been
	Processes []schema.Descriptor         `json:"processes,omitzero"`
	PID       int64                       `json:"pid,omitzero"`
	Program   *program                    `json:"program,omitzero"` // of PID
	Context   *keptContext                `json:"context,omitzero"`
	Operator  map[string]schema.Identity  `json:"operator,omitzero"` // by origin
}

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
	// The lists of ended processes grow at their end and are cut at their beginning: a copy of one stays as it is.
	head := &chunk{Next: d.table.next, Ended: maps.Clone(d.table.ended), Prepared: d.prepared, Events: d.events.count}
	processes, programs, kept := d.table.processes.Copy(), d.table.programs.Copy(), d.contexts.kept.Copy()
	if operator := *d.contexts.operator; len(operator) > 0 {
		head.Operator = make(map[string]schema.Identity, len(operator))
		for origin, identity := range operator {
			head.Operator[origin] = *identity
		}
	}
	return func(write func(chunk []byte) error) error {
		if err := put(head, write); err != nil {
			return err
		}
		var err error
		part := &chunk{}
		processes.Scan(func(_ int64, p *schema.Descriptor) bool {
			part.Processes = append(part.Processes, *p)
			if len(part.Processes) == chunkProcesses {
				err = put(part, write)
				part.Processes = part.Processes[:0]
			}
			return err == nil
		})
		if err == nil && len(part.Processes) > 0 {
			err = put(part, write)
		}
		programs.Scan(func(pid int64, p *program) bool {
			if err == nil {
				err = put(&chunk{PID: pid, Program: p}, write)
			}
			return err == nil
		})
		kept.Scan(func(at string, c *content) bool {
			if err == nil {
				cut := strings.LastIndexByte(at, 0)
				err = put(&chunk{Context: &keptContext{at[:cut], at[cut+1:], c.frontMatter, c.text, c.holders}}, write)
			}
			return err == nil
		})
		return err
	}
}

func put(c *chunk, write func(chunk []byte) error) error {
	raw, err := schema.Marshal(c)
	if err != nil {
		return err
	}
	return write(raw)
}

// Restore implements kernel.Domain.
func (d *Domain) Restore(raw []byte) error {
	if !schema.Valid(raw) {
		return fmt.Errorf("restore processes: chunk of %d bytes is not JSON", len(raw))
	}
	data, err := d.form.Decode(raw)
	if err != nil {
		return fmt.Errorf("restore processes: %w", err)
	}
	c := data.(*chunk)
	d.view.all()
	if c.Next > 0 {
		d.events.count = c.Events
		d.table.next, d.table.ended, d.prepared = c.Next, c.Ended, c.Prepared
		if d.table.ended == nil {
			d.table.ended = make(map[string][]int64)
		}
	}
	d.contexts.restore(c)
	for i := range c.Processes {
		if p := &c.Processes[i]; p.PID < 1 || p.PID >= d.table.next {
			return fmt.Errorf("restore processes: pid %d lies outside of 1 to %d", p.PID, d.table.next-1)
		}
		d.table.put(&c.Processes[i])
	}
	if c.Program != nil {
		d.table.programs.Set(c.PID, c.Program)
	}
	return nil
}
