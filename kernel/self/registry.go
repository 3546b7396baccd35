package self

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// registrations is what is registered, by origin and name. It is immutable: a change makes another one.
type registrations struct {
	origins map[string]map[string]*schema.Registration
	recent  map[int64][]int64 // times of agents' registrations in the last minute, in milliseconds
}

// of returns the registration of a name in an origin, nil if there is none.
func (r *registrations) of(origin, name string) *schema.Registration { return r.origins[origin][name] }

// names are the registered names of an origin, sorted.
func (r *registrations) names(origin string) []string {
	return slices.Sorted(maps.Keys(r.origins[origin]))
}

// code is the number of bytes of code registered in an origin.
func (r *registrations) code(origin string) (n int) {
	for _, one := range r.origins[origin] {
		n += len(text(one.Code))
	}
	return n
}

// changed returns a registry with another registration, or none, for a name of an origin.
func (r *registrations) changed(origin, name string, is *schema.Registration) *registrations {
	next := &registrations{origins: maps.Clone(r.origins), recent: r.recent}
	if next.origins == nil {
		next.origins = make(map[string]map[string]*schema.Registration)
	}
	names := maps.Clone(next.origins[origin])
	if names == nil {
		names = make(map[string]*schema.Registration)
	}
	if names[name] = is; is == nil {
		delete(names, name)
	}
	if next.origins[origin] = names; len(names) == 0 {
		delete(next.origins, origin)
	}
	return next
}

// counted returns a registry with another registration of an agent at a time. It drops times that are a minute old.
func (r *registrations) counted(pid, now int64) *registrations {
	next := &registrations{origins: r.origins, recent: make(map[int64][]int64)}
	for one := range r.recent {
		if times := r.since(one, now); len(times) > 0 {
			next.recent[one] = times
		}
	}
	if pid != kernel.Operator {
		next.recent[pid] = append(slices.Clip(next.recent[pid]), now)
	}
	return next
}

// since are the times of an agent's registrations in the minute before now.
func (r *registrations) since(pid, now int64) []int64 {
	const minute = 60_000
	return slices.DeleteFunc(slices.Clone(r.recent[pid]), func(at int64) bool { return at <= now-minute })
}

// Registry is the view of the registered syscalls.
type Registry struct{ shown atomic.Pointer[registrations] }

var _ kernel.Registry = (*Registry)(nil)

// Registered implements kernel.Registry.
func (v *Registry) Registered(origin, name string) *schema.Registration {
	return v.shown.Load().of(origin, name)
}

// RegisteredIn implements kernel.Registry.
func (v *Registry) RegisteredIn(origin string) []string { return v.shown.Load().names(origin) }

// Registry returns the view of the registered syscalls.
func (d *Domain) Registry() *Registry { return &d.view }

// Publish implements kernel.Publisher.
func (d *Domain) Publish() { d.view.shown.Store(d.registry) }
