package self

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// registry is what was registered, by origin and name. It is immutable: a change makes another.
type registry struct {
	origins map[string]map[string]*schema.Registration
	recent  map[int64][]int64 // when agents have registered in the last minute, in milliseconds
}

// of returns what is registered under a name in an origin, nil where nothing is.
func (r *registry) of(origin, name string) *schema.Registration { return r.origins[origin][name] }

// names are those of all that is registered in an origin, sorted.
func (r *registry) names(origin string) []string { return slices.Sorted(maps.Keys(r.origins[origin])) }

// code is how many bytes of code are registered in an origin.
func (r *registry) code(origin string) (n int) {
	for _, one := range r.origins[origin] {
		n += len(text(one.Code))
	}
	return n
}

// changed is a registry in which a name of an origin is another registration; nil: none.
func (r *registry) changed(origin, name string, is *schema.Registration) *registry {
	next := &registry{origins: maps.Clone(r.origins), recent: r.recent}
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

// counted is a registry in which an agent has registered at a time. What is a minute old is forgotten.
func (r *registry) counted(pid, now int64) *registry {
	next := &registry{origins: r.origins, recent: make(map[int64][]int64)}
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

// since are the times of the minute before now at which an agent has registered.
func (r *registry) since(pid, now int64) []int64 {
	const minute = 60_000
	return slices.DeleteFunc(slices.Clone(r.recent[pid]), func(at int64) bool { return at <= now-minute })
}

// saved is the registry as a snapshot has it, in order.
func (r *registry) saved() *saved {
	s := &saved{Registered: []savedOrigin{}}
	for _, origin := range slices.Sorted(maps.Keys(r.origins)) {
		one := savedOrigin{Origin: origin}
		for _, name := range slices.Sorted(maps.Keys(r.origins[origin])) {
			one.Syscalls = append(one.Syscalls, *r.origins[origin][name])
		}
		s.Registered = append(s.Registered, one)
	}
	for _, pid := range slices.Sorted(maps.Keys(r.recent)) {
		s.Recent = append(s.Recent, recent{pid, r.recent[pid]})
	}
	return s
}

func restored(s *saved) *registry {
	r := &registry{origins: make(map[string]map[string]*schema.Registration), recent: make(map[int64][]int64)}
	for _, origin := range s.Registered {
		names := make(map[string]*schema.Registration)
		for i := range origin.Syscalls {
			names[origin.Syscalls[i].Name] = origin.Syscalls[i].Own()
		}
		r.origins[origin.Origin] = names
	}
	for _, one := range s.Recent {
		r.recent[one.PID] = one.Times
	}
	return r
}

// Registry is the view that others have of what was registered.
type Registry struct{ shown atomic.Pointer[registry] }

var _ kernel.Registry = (*Registry)(nil)

// Registered implements kernel.Registry.
func (v *Registry) Registered(origin, name string) *schema.Registration {
	return v.shown.Load().of(origin, name)
}

// RegisteredIn implements kernel.Registry.
func (v *Registry) RegisteredIn(origin string) []string { return v.shown.Load().names(origin) }

// Registry returns the view that others have of what was registered.
func (d *Domain) Registry() *Registry { return &d.view }

// Publish implements kernel.Publisher.
func (d *Domain) Publish() { d.view.shown.Store(d.registry) }
