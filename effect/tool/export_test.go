package tool

// Cached returns how many compiled modules are kept.
func (m *Modules) Cached() int {
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	return m.cache.order.Len()
}
