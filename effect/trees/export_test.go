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

// Discard removes the stores of trees that are not open, in which nothing happened since a time.
func (t *Trees) Discard(before time.Time) error { return t.discard(before) }
