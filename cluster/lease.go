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

// A lease tells a standby that the leader is alive. It is an entry of the bus that the leader renews periodically; the
// standby takes over if it has not changed for the term. The lease is for liveness only: the stream keeps two hosts from
// writing one journal. Times of different hosts are never compared: each side measures on its own clock how long it has
// seen no change.

const (
	leasePrefix = "pwos-lease-"
	leaseKey    = "leader"
	// renewals is how often the leader can write its lease in a term, if each write takes as long as it may.
	renewals = 5
)

// LeaseBucket is the bucket of a kernel's lease.
func LeaseBucket(kernel string) string { return leasePrefix + kernel }

// leaseEntry is the text of a lease.
type leaseEntry struct {
	Key   string `json:"key"`   // fingerprint of the host; "": it has ended cleanly, and answers no more calls
	Epoch int64  `json:"epoch"` // the epoch that it leads
}

var leaseEntries = sync.OnceValue(schema.TypeOf[leaseEntry])

// Clock returns the time since some fixed point. It never goes back, and includes the time that the machine is asleep.
type Clock func() time.Duration

// Seen is a lease as one host has read it.
type Seen struct {
	Revision uint64        // 0: there is no lease
	Since    time.Duration // when this host first read it, on its clock
	Key      string        // fingerprint of the host that wrote it
	Epoch    int64
}

// Replaced reports whether an answer of JetStream is in the place of the lease.
func (s Seen) Replaced() bool { return s.Key == noLease }

// LeaseOptions are the options of leader and standby.
type LeaseOptions struct {
	Kernel   string
	Replicas int
	Term     time.Duration
	Clock    Clock
}

// SelfFence returns how long after its last renewal a leader still leads. It is shorter than the term, so that the leader
// stops before a standby starts even if the rates of their clocks differ by a fifth.
func SelfFence(term time.Duration) time.Duration { return term / 5 * 4 }

// Watch is a standby's view of a lease.
type Watch struct {
	LeaseOptions
	js   jetstream.JetStream
	kv   jetstream.KeyValue
	seen Seen
}

// NewWatch returns a Watch that has not read the lease yet.
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

// noLease is the key of an entry that no host wrote: the answer to a request to JetStream, which a member had sent to the subject
// of the lease, since NATS does not check where answers go. It may have replaced a lease that this host has not read.
const noLease = "unknown"

func readLease(ctx context.Context, kv jetstream.KeyValue) (Seen, error) {
	entry, err := kv.Get(ctx, leaseKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Seen{}, nil
	}
	if err != nil {
		return Seen{}, busFault("read lease", err)
	}
	seen := Seen{Revision: entry.Revision(), Key: noLease}
	if value, invalid := leaseEntries().DecodeUntrusted(entry.Value()); invalid == nil {
		e := value.(*leaseEntry)
		seen.Key, seen.Epoch = e.Key, e.Epoch
	}
	return seen, nil
}

// Lease is the lease of the leader.
type Lease struct {
	LeaseOptions
	own      leaseEntry
	js       jetstream.JetStream
	kv       jetstream.KeyValue
	standbys func() bool // whether any other host may lead
	alone    atomic.Bool // the last result of standbys, negated

	mu      sync.Mutex
	seen    Seen          // the next renewal replaces it
	from    time.Duration // when it starts to count: another host may lead until then
	until   time.Duration // when it ends
	held    bool          // it was written
	deposed bool          // a later epoch has a lease
}

// NewLease returns a lease that is not held yet. seen is the lease of another host that this host read as a standby.
func NewLease(js jetstream.JetStream, o LeaseOptions, key string, epoch int64, seen Seen, standbys func() bool) *Lease {
	l := &Lease{LeaseOptions: o, own: leaseEntry{key, epoch}, js: js, seen: seen, standbys: standbys}
	l.alone.Store(!standbys())
	return l
}

// Held reports whether no other host can lead at present, as far as clocks can tell. It is always true without another
// host.
func (l *Lease) Held() bool {
	if l.alone.Load() {
		return true
	}
	now := l.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held && !l.deposed && now >= l.from && now < l.until
}

// Run renews the lease until ctx ends, and calls changed when Held changes.
func (l *Lease) Run(ctx context.Context, changed func(held bool)) {
	was := l.Held()
	for ctx.Err() == nil {
		short, stop := context.WithTimeout(ctx, l.within(l.Term/renewals))
		_ = l.Renew(short) // the next attempt follows; if all fail, the lease ends
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

// within returns d, or the rest of the lease if that is shorter, so that its end is noticed at once.
func (l *Lease) within(d time.Duration) time.Duration {
	now := l.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.until - now; l.held && left > 0 {
		return min(d, left)
	}
	return d
}

// replacedTries is how often Renew writes the lease again at once, if an answer of JetStream has replaced it each time.
const replacedTries = 5

// Renew writes the lease if the bus has the one that was read last.
func (l *Lease) Renew(ctx context.Context) (err error) {
	if l.kv == nil {
		if l.kv, err = l.open(ctx); err != nil {
			return err
		}
	}
	for range replacedTries {
		var replaced bool
		if replaced, err = l.write(ctx); !replaced {
			break
		}
	}
	return err
}

// write writes the lease once. replaced reports that it was not written since an answer of JetStream was in the place of this host's
// lease, so that the next attempt replaces that one.
func (l *Lease) write(ctx context.Context) (replaced bool, err error) {
	l.mu.Lock()
	seen, deposed := l.seen, l.deposed
	l.mu.Unlock()
	if deposed {
		return false, nil
	}
	text, err := schema.Marshal(&l.own)
	if err != nil {
		return false, err
	}
	sent := l.Clock()
	revision, err := l.kv.Update(ctx, leaseKey, text, seen.Revision) // revision 0: it must not exist
	if err != nil {
		replaced, unread := l.look(ctx)
		return replaced, errors.Join(fmt.Errorf("renew lease: %w", err), unread)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case seen.Key == l.own.Key, seen.Revision > 0 && seen.Key == "", seen.Revision == 0 && l.own.Epoch == 1:
	default:
		l.from = seen.Since + l.Term // the other host may lead until then
	}
	l.seen = Seen{Revision: revision, Since: sent, Key: l.own.Key, Epoch: l.own.Epoch}
	l.held, l.until = true, sent+SelfFence(l.Term)
	return false, nil
}

// Release gives up the lease. The caller must not answer calls afterwards.
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

// look reads the lease after a refused renewal: the answer was lost, another host has written it, an answer of JetStream has replaced
// this host's (replaced), or the bus has lost it.
func (l *Lease) look(ctx context.Context) (replaced bool, err error) {
	next, err := readLease(ctx, l.kv)
	if err != nil {
		return false, err
	}
	now := l.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if next.Epoch > l.own.Epoch {
		l.deposed = true
	}
	switch {
	case next.Revision == l.seen.Revision:
	case next.Key == noLease && l.held && now < l.until: // no other host can have written one meanwhile
		l.seen.Revision, replaced = next.Revision, true
	default:
		next.Since = now
		l.seen = next
	}
	return replaced, nil
}

// open opens the bucket of the lease, and creates it if it is missing.
func (l *Lease) open(ctx context.Context) (jetstream.KeyValue, error) {
	if _, err := openStream(ctx, l.js, makeLease, l.Kernel, l.Replicas); err != nil {
		return nil, busFault("open lease", err)
	}
	kv, err := l.js.KeyValue(ctx, LeaseBucket(l.Kernel))
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

// lookFirst reads the lease of the previous leader, if there is one.
func (l *Lease) lookFirst(ctx context.Context, kv jetstream.KeyValue) error {
	l.kv = kv
	if _, err := l.look(ctx); err != nil {
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

// started is when this process started to measure time, if the system has no better clock.
var started = time.Now()
