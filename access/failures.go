package access

import (
	"sync"
	"time"
)

const (
	firstDelay = 10 * time.Millisecond
	maxDelay   = 500 * time.Millisecond
	// quietTime is how long a user has to stay away from failing until it counts as one that never did.
	quietTime = time.Minute
	// maxFailing bounds of how many users failures are remembered.
	maxFailing = 256
	// maxHeld bounds how many refusals wait at once. Beyond it they go out at once: holding them would take the places of
	// those who wait to log in (PROTOCOL 4).
	maxHeld = 16
)

// Failures says how long to hold back the refusal of a failed login, so that trying again and again is slow. A good
// login is never held back, whatever others of the same user did: it is verified, and let in, without asking here.
//
// The first failure waits 10 ms, each further one twice as long, up to 500 ms. The zero value is ready to use, by many
// goroutines.
type Failures struct {
	mu    sync.Mutex
	users map[int]failing
	held  int
}

// failing is a user that failed.
type failing struct {
	next time.Duration // how long its next refusal is held back
	last time.Time
}

// Failed notes a failed login of user uid, and returns how long to hold its refusal back. release is to be called when that
// is over, or the connection is.
func (f *Failures) Failed(uid int, now time.Time) (delay time.Duration, release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	user, ok := f.users[uid]
	if !ok || now.Sub(user.last) >= quietTime {
		user = failing{next: firstDelay}
		f.makeRoom(uid)
	}
	delay = user.next
	f.users[uid] = failing{next: min(2*user.next, maxDelay), last: now}
	if f.held >= maxHeld {
		return 0, func() {}
	}
	f.held++
	return delay, sync.OnceFunc(func() {
		f.mu.Lock()
		f.held--
		f.mu.Unlock()
	})
}

// Succeeded forgets the failures of user uid: whoever mistook the key is not to pay for it later.
func (f *Failures) Succeeded(uid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.users, uid)
}

// makeRoom forgets the user whose last failure is longest ago if there is no room for uid.
func (f *Failures) makeRoom(uid int) {
	if f.users == nil {
		f.users = make(map[int]failing)
	}
	if _, ok := f.users[uid]; ok || len(f.users) < maxFailing {
		return
	}
	var oldest int
	var when time.Time
	for id, user := range f.users {
		if when.IsZero() || user.last.Before(when) {
			oldest, when = id, user.last
		}
	}
	delete(f.users, oldest)
}
