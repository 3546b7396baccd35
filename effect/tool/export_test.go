package tool

// Cached returns the number of compiled modules in the cache.
func (m *Modules) Cached() int {
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	return m.cache.order.Len()
}
