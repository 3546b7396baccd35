package keyed

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/schema"
)

const (
	// refusalWindow is how long refused logins are counted together.
	refusalWindow = time.Minute
	// refusalsTold is how many refusals of a window are recorded one by one.
	refusalsTold = 10
)

// refusals records refused logins, in the journal and in the log. Any client that reaches the
// socket can cause them, and must not fill the disk with them: the first of each window are
// recorded one by one, the rest at the window's end, one record with a count for each reason. The
// reasons are few and fixed.
type refusals struct {
	log  *slog.Logger
	note func(schema.Request)

	mu     sync.Mutex
	since  time.Time // start of the window; zero before the first
	told   int
	rest   map[string]*schema.LoginFailedInput // by reason: the latest, with the count of them
	timer  *time.Timer                         // ends the window; nil if there is no rest
	closed bool
}

// refused records one refused login. cause is only logged.
func (r *refusals) refused(one *schema.LoginFailedInput, cause ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.since) >= refusalWindow {
		r.flush()
		r.since, r.told = now, 0
	}
	if r.told < refusalsTold || r.closed {
		r.told++
		r.record(one, cause...)
		return
	}
	if r.rest == nil {
		r.rest = make(map[string]*schema.LoginFailedInput)
		r.timer = time.AfterFunc(refusalWindow-now.Sub(r.since), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.flush()
		})
	}
	one.Count = 1
	if before := r.rest[one.Reason]; before != nil {
		one.Count += before.Count
	}
	r.rest[one.Reason] = one
}

// flush records what was counted. The caller holds r.mu.
func (r *refusals) flush() {
	if r.rest == nil {
		return
	}
	r.timer.Stop() // if it runs already, it finds nothing to record
	for _, reason := range slices.Sorted(maps.Keys(r.rest)) {
		r.record(r.rest[reason])
	}
	r.rest, r.timer = nil, nil
}

func (r *refusals) record(one *schema.LoginFailedInput, cause ...any) {
	r.note(schema.KernelLoginFailed.With(one))
	attrs := []any{"reason", one.Reason, "key", one.Fingerprint}
	if one.Address != "" {
		attrs = append(attrs, "address", one.Address)
	} else {
		attrs = append(attrs, "uid", *one.UID, "peer", *one.OSPID)
	}
	if one.Count > 0 {
		attrs = append(attrs, "count", one.Count)
	}
	r.log.Warn("login refused", append(attrs, cause...)...)
}

// close records what was counted so far, and stops the recording.
func (r *refusals) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	r.closed = true
}
