package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/schema"
)

// A lease tells a standby that the host that leads is alive. It is an entry of the bus that the leader renews all the time; the
// standby takes over once it has not changed for the term. It is for liveness only: what keeps two hosts from writing one record is the
// stream. No time of one host is compared with one of another: each side measures how long it has seen nothing, on its own clock.

const (
	leasePrefix = "pwos-lease-"
	leaseKey    = "leader"
	// renewals is how many times in a term the leader can write its lease, if each time takes as long as it may.
	renewals = 5
)

// LeaseBucket is the bucket of a kernel's lease.
func LeaseBucket(kernel string) string { return leasePrefix + kernel }

// leaseEntry is the text of a lease.
type leaseEntry struct {
	Key   string `json:"key"`   // fingerprint of the host; "": it has ended cleanly, and answers nothing any more
	Epoch int64  `json:"epoch"` // that it leads in
}

var leaseEntries = sync.OnceValue(schema.TypeOf[leaseEntry])

// Clock measures time from any beginning on. It never goes back, and goes on while the machine sleeps.
type Clock func() time.Duration

// Seen is a lease as one host has seen it.
type Seen struct {
	Revision uint64        // 0: there is none
	Since    time.Duration // when this host saw it first, on its clock
	Key      string        // fingerprint of the host that wrote it
	Epoch    int64
}

// LeaseOptions are those of both sides.
type LeaseOptions struct {
	Kernel   string
	Replicas int
	Term     time.Duration
	Clock    Clock
}

// SelfFence is how long after its last renewal the leader of a lease takes itself for the leader. It is less than the term, so that
// it ends before a standby begins, on clocks whose rates differ by up to a fifth.
func SelfFence(term time.Duration) time.Duration { return term / 5 * 4 }

// Watch is a standby's view of a lease.
type Watch struct {
	LeaseOptions
	js   jetstream.JetStream
	kv   jetstream.KeyValue
	seen Seen
}

// NewWatch returns a Watch that has seen nothing.
func NewWatch(js jetstream.JetStream, o LeaseOptions) *Watch { return &Watch{LeaseOptions: o, js: js} }

// Look reads the lease, and reports whether it has not changed for the term.
func (w *Watch) Look(ctx context.Context) (seen Seen, expired bool, err error) {
	if w.kv == nil {
		if w.kv, err = w.js.KeyValue(ctx, LeaseBucket(w.Kernel)); errors.Is(err, jetstream.ErrBucketNotFound) {
			return Seen{}, false, nil
		}
		if err != nil {
			return w.seen, false, busFault("open lease", err)
		}
	}
	next, err := readLease(ctx, w.kv)
	if err != nil {
		return w.seen, false, err
	}
	now := w.Clock()
	if next.Revision != w.seen.Revision {
		next.Since = now
		w.seen = next
	}
	return w.seen, w.seen.Revision > 0 && now-w.seen.Since >= w.Term, nil
}

func readLease(ctx context.Context, kv jetstream.KeyValue) (Seen, error) {
	entry, err := kv.Get(ctx, leaseKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Seen{}, nil
	}
	if err != nil {
		return Seen{}, busFault("read lease", err)
	}
	seen := Seen{Revision: entry.Revision(), Key: "unknown"}
	if value, invalid := leaseEntries().Decode(entry.Value()); invalid == nil {
		e := value.(*leaseEntry)
		seen.Key, seen.Epoch = e.Key, e.Epoch
	}
	return seen, nil
}

// Lease is the one of the host that leads.
type Lease struct {
	LeaseOptions
	own      leaseEntry
	js       jetstream.JetStream
	kv       jetstream.KeyValue
	standbys func() bool // whether any other host may lead
	alone    atomic.Bool // what it said last

	mu      sync.Mutex
	seen    Seen          // what the next renewal replaces
	from    time.Duration // when it begins to count: another host may lead until then
	until   time.Duration // when it ends
	held    bool          // it was written
	deposed bool          // a later epoch has a lease
}

// NewLease returns a lease that is not held yet. seen is what this host saw of another host's as a standby.
func NewLease(js jetstream.JetStream, o LeaseOptions, key string, epoch int64, seen Seen, standbys func() bool) *Lease {
	l := &Lease{LeaseOptions: o, own: leaseEntry{key, epoch}, js: js, seen: seen, standbys: standbys}
	l.alone.Store(!standbys())
	return l
}

// Held reports whether no other host can lead at present, as far as clocks can tell. If there is no other host, none can.
func (l *Lease) Held() bool {
	if l.alone.Load() {
		return true
	}
	now := l.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held && !l.deposed && now >= l.from && now < l.until
}

// Run keeps the lease until ctx ends, and tells changed whenever Held has changed.
func (l *Lease) Run(ctx context.Context, changed func(held bool)) {
	was := l.Held()
	for ctx.Err() == nil {
		short, stop := context.WithTimeout(ctx, l.within(l.Term/renewals))
		_ = l.Renew(short) // the bus is tried again, and the end of the lease says what it means
		stop()
		l.alone.Store(!l.standbys())
		if is := l.Held(); is != was {
			was = is
			changed(is)
		}
		if !sleep(ctx, l.within(l.Term/renewals/2)) {
			return
		}
	}
}

// within returns d, or less if the lease ends before: that is noticed at once.
func (l *Lease) within(d time.Duration) time.Duration {
	now := l.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.until - now; l.held && left > 0 {
		return min(d, left)
	}
	return d
}

// Renew writes the lease behind the one that was seen last.
func (l *Lease) Renew(ctx context.Context) (err error) {
	if l.kv == nil {
		if l.kv, err = l.open(ctx); err != nil {
			return err
		}
	}
	l.mu.Lock()
	seen, deposed := l.seen, l.deposed
	l.mu.Unlock()
	if deposed {
		return nil
	}
	text, err := schema.Marshal(&l.own)
	if err != nil {
		return err
	}
	sent := l.Clock()
	revision, err := l.kv.Update(ctx, leaseKey, text, seen.Revision) // 0: as the first
	if err != nil {
		return errors.Join(fmt.Errorf("renew lease: %w", err), l.look(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case seen.Key == l.own.Key, seen.Revision > 0 && seen.Key == "", seen.Revision == 0 && l.own.Epoch == 1:
	default:
		l.from = seen.Since + l.Term // the other host may have taken itself for the leader until then
	}
	l.seen = Seen{Revision: revision, Since: sent, Key: l.own.Key, Epoch: l.own.Epoch}
	l.held, l.until = true, sent+SelfFence(l.Term)
	return nil
}

// Release gives the lease up. Nothing may be answered any more.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	seen, held := l.seen, l.held && !l.deposed
	l.mu.Unlock()
	if !held {
		return nil
	}
	text, err := schema.Marshal(&leaseEntry{Epoch: l.own.Epoch})
	if err == nil {
		_, err = l.kv.Update(ctx, leaseKey, text, seen.Revision)
	}
	if err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}

// look finds out why a renewal was refused: its answer was lost, another host has written, or the bus has lost the lease.
func (l *Lease) look(ctx context.Context) error {
	next, err := readLease(ctx, l.kv)
	if err != nil {
		return err
	}
	now := l.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if next.Epoch > l.own.Epoch {
		l.deposed = true
	}
	if next.Revision != l.seen.Revision {
		next.Since = now
		l.seen = next
	}
	return nil
}

// open opens the bucket of the lease, or makes it.
func (l *Lease) open(ctx context.Context) (jetstream.KeyValue, error) {
	kv, err := l.js.KeyValue(ctx, LeaseBucket(l.Kernel))
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = l.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: LeaseBucket(l.Kernel), Description: "which host leads the pwos kernel " + l.Kernel, History: 1, Replicas: l.Replicas})
	}
	if err != nil {
		return nil, busFault("open lease", err)
	}
	l.mu.Lock()
	known := l.seen.Revision > 0
	l.mu.Unlock()
	if !known {
		return kv, l.lookFirst(ctx, kv)
	}
	return kv, nil
}

// lookFirst sees the lease of the host that led before, if there is one.
func (l *Lease) lookFirst(ctx context.Context, kv jetstream.KeyValue) error {
	l.kv = kv
	err := l.look(ctx)
	if err != nil {
		l.kv = nil
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen.Revision == 0 {
		l.seen.Since = l.Clock()
	}
	return nil
}

// started is when this process began to measure time, if the system has no better clock.
var started = time.Now()
