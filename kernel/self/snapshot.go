package self

import (
	"maps"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// record is a part of a snapshot: what the last start noted, a registered syscall, or an agent's registrations of the last
// minute.
type record struct {
	Booted  *schema.BootedInput  `json:"booted,omitzero" keep:"always"`
	Origin  string               `json:"origin,omitzero" keep:"always"`
	Syscall *schema.Registration `json:"syscall,omitzero" keep:"always"` // of Origin
	PID     int64                `json:"pid,omitzero" keep:"always"`
	Times   []int64              `json:"times,omitzero" keep:"always"` // of PID, in milliseconds
}

var records = kernel.RecordsOf[record]()

// Snapshot implements kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	booted, registry := d.booted, d.registry
	return records.Writer(func(yield func(record) bool) {
		if booted != nil && !yield(record{Booted: booted}) {
			return
		}
		for _, origin := range slices.Sorted(maps.Keys(registry.origins)) {
			for _, name := range registry.names(origin) {
				if !yield(record{Origin: origin, Syscall: registry.of(origin, name)}) {
					return
				}
			}
		}
		for _, pid := range slices.Sorted(maps.Keys(registry.recent)) {
			if !yield(record{PID: pid, Times: registry.recent[pid]}) {
				return
			}
		}
	})
}

// Reset forgets the last start, and what was registered.
func (d *Domain) Reset() { d.booted, d.registry = nil, &registrations{} }

// Restore implements kernel.Domain.
func (d *Domain) Restore(chunk []byte) error {
	return records.Read(chunk, func(r *record) error {
		if r.Booted != nil {
			d.booted = r.Booted
		}
		if r.Syscall != nil {
			d.registry = d.registry.changed(r.Origin, r.Syscall.Name, r.Syscall.Own())
		}
		if len(r.Times) > 0 {
			d.registry = &registrations{origins: d.registry.origins, recent: maps.Clone(d.registry.recent)}
			if d.registry.recent == nil {
				d.registry.recent = make(map[int64][]int64)
			}
			d.registry.recent[r.PID] = r.Times
		}
		return nil
	})
}
