package trees

import "time"

// Look does what the trees do every now and then, as if it were this time.
func (t *Trees) Look(now time.Time) {
	t.mu.Lock()
	all := t.all()
	t.mu.Unlock()
	for _, one := range all {
		one.tick(now)
	}
}

// DiscardStores removes the stores of trees that are not open, in which nothing happened since a time.
func (t *Trees) DiscardStores(before time.Time) error { return t.discardStores(before) }

// Collect forgets steps that ended before a time.
func Collect(t *Trees, before time.Time) { t.collect(before) }
