package tool

import (
	"container/list"
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
)

// cache keeps compiled modules by digest, the ones that were used last. One that is in use when it is evicted is closed by who
// uses it last.
type cache struct {
	mu      *sync.Mutex
	limit   int
	entries map[string]*list.Element // of *entry
	order   *list.List               // the last used first
}

type entry struct {
	digest  string
	module  wazero.CompiledModule
	users   int
	evicted bool
}

func newCache(limit int) cache {
	return cache{mu: new(sync.Mutex), limit: limit, entries: make(map[string]*list.Element), order: list.New()}
}

// get returns the module of a digest; release must be called once when it is not used any more.
func (c *cache) get(digest string) (module wazero.CompiledModule, release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[digest]
	if !ok {
		return nil, nil, false
	}
	c.order.MoveToFront(at)
	module, release = c.use(at.Value.(*entry))
	return module, release, true
}

// put keeps a module. Where another one came first, that is returned and this one closed.
func (c *cache) put(digest string, module wazero.CompiledModule) (kept wazero.CompiledModule, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.entries[digest]; ok {
		closeModule(module)
		return c.use(at.Value.(*entry))
	}
	e := &entry{digest: digest, module: module}
	c.entries[digest] = c.order.PushFront(e)
	kept, release = c.use(e)
	for c.order.Len() > c.limit {
		old := c.order.Remove(c.order.Back()).(*entry)
		delete(c.entries, old.digest)
		if old.evicted = true; old.users == 0 {
			closeModule(old.module)
		}
	}
	return kept, release
}

func (c *cache) use(e *entry) (wazero.CompiledModule, func()) {
	e.users++
	return e.module, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if e.users--; e.users == 0 && e.evicted {
			closeModule(e.module)
		}
	}
}

// closeModule frees a compiled module. The engine's Close of one returns no error.
func closeModule(m wazero.CompiledModule) { _ = m.Close(context.Background()) }
