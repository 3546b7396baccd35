package tool

import (
	"container/list"
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
)

// cache is an LRU cache of compiled modules, by digest. A module that is evicted while it is in use is closed when its last user
// releases it.
type cache struct {
	mu      *sync.Mutex
	limit   int
	entries map[string]*list.Element // of *entry
	order   *list.List               // most recently used first
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

// get returns the module of a digest. The caller must call release once after its last use.
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

// put adds a module and returns it. If the cache already has the digest, put closes the module and returns the cached one.
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

// closeModule frees a compiled module. Close of the engine never fails for it.
func closeModule(m wazero.CompiledModule) { _ = m.Close(context.Background()) }
