package access

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Verifier is the daemon's side of the logins of signature mode. Its fields are set once; it may be used by many
// goroutines.
type Verifier struct {
	// Host is the kernel's own key.
	Host *Signer
	// Keys returns the keys that are authorized now, such as Source.Load. It is called for each
	// answer.
	Keys func() (*AuthorizedKeys, error)
	// Now is the clock.
	Now func() time.Time
}

// Challenge is one connection's login. It accepts one answer, right or wrong; after that, and after
// Cancel, it refuses every answer. So an answer is useless on another connection, and a second time
// on this one.
type Challenge struct {
	verifier *Verifier
	binding  Binding
	data     []byte
	spent    atomic.Bool
}

// Challenge begins a login on a connection, and proves the host key to its client. It returns a
// *fault.Fault if the system does not report the client's process.
func (v *Verifier) Challenge(ctx context.Context, channel Channel) (*Challenge, error) {
	c := &Challenge{verifier: v, binding: Binding{
		HostKey: v.Host.Key(), Channel: channel,
		Issued: time.UnixMilli(v.Now().UnixMilli()),
	}}
	_, _ = rand.Read(c.binding.Challenge[:]) // never returns an error
	text, err := c.binding.Text(Host)
	if err != nil {
		return nil, err
	}
	proof, err := v.Host.Sign(ctx, HostNamespace, text)
	if err != nil {
		return nil, err
	}
	c.data = marshalData(&offerData{
		Scheme:        schemeSignature,
		Challenge:     base64.StdEncoding.EncodeToString(c.binding.Challenge[:]),
		HostKey:       c.binding.HostKey.String(),
		HostSignature: base64.StdEncoding.EncodeToString(proof.marshal()),
	})
	return c, nil
}

// Data is the data of the prologue's first frame (PROTOCOL 4): scheme, challenge, host_key and
// host_signature, the base64 of a binary SSHSIG of the binding's text in the role of the host.
func (c *Challenge) Data() []byte { return c.data }

// Issued is the time that the first frame's metadata must carry, to the millisecond: it is signed.
func (c *Challenge) Issued() time.Time { return c.binding.Issued }

// Cancel refuses every later answer. Call it when the connection ends.
func (c *Challenge) Cancel() { c.spent.Store(true) }

// Verify checks the data of the client's answer and returns the line of authorized_keys that admits
// it. The error is a *fault.Fault that names the key if there was one; the connection must be
// closed after it.
func (c *Challenge) Verify(answer []byte) (*AuthorizedKey, error) {
	if c.spent.Swap(true) {
		return nil, fault.AuthSpent.New("the challenge was answered already: connect again")
	}
	now := c.verifier.Now()
	if err := checkTime(c.binding.Issued, now); err != nil {
		return nil, err
	}
	sig, failure := parseAnswer(answer)
	if failure != nil {
		return nil, failure
	}
	keys, err := c.verifier.Keys()
	if err != nil {
		return nil, fault.AuthNoKeys.New("the daemon cannot read its authorized_keys: see its log, correct the file, then log in again").With("key", sig.Key.Fingerprint()).Wrap(err)
	}
	key, err := keys.Lookup(sig.Key, now)
	if err != nil {
		return nil, err
	}
	text, err := c.binding.Text(Client)
	if err != nil {
		return nil, err
	}
	if err := sig.Verify(Namespace, text, key.NoTouch); err != nil {
		return nil, err
	}
	return key, nil
}

const (
	firstDelay = 10 * time.Millisecond
	maxDelay   = 500 * time.Millisecond
	// quietTime is how long a user must be without a failure to be forgotten.
	quietTime = time.Minute
	// maxFailing bounds the number of users whose failures are remembered.
	maxFailing = 256
	// maxHeld bounds how many refusals are delayed at once. Further ones are sent at once: a
	// delayed one occupies a place of the prologue (PROTOCOL 4).
	maxHeld = 16
)

// Failures delays the refusal of a failed login, so that guessing is slow. A good login is never
// delayed, whatever other clients of the same user did: it is admitted without a call of Failures.
//
// The first failure waits 10 ms, each further one twice as long, up to 500 ms. The zero value is
// ready to use, by many goroutines.
type Failures struct {
	mu    sync.Mutex
	users map[int]failing
	held  int
}

// failing is a user whose logins failed.
type failing struct {
	next time.Duration // delay of its next refusal
	last time.Time
}

// Failed records a failed login of user uid, and returns how long to delay its refusal. Call
// release after the delay, or when the connection ends.
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

// Succeeded forgets the failures of user uid: one mistaken key does not slow down later logins.
func (f *Failures) Succeeded(uid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.users, uid)
}

// makeRoom forgets the user with the oldest last failure if there is no room for uid.
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
