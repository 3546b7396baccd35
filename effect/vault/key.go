// Package vault opens what is sealed with the kernel's key.
package vault

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/kernel/crypto"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// enrolTime bounds the preparation of the sealing key: an agent that lists its keys and signs a
	// few times, with a person who touches a key or confirms.
	enrolTime = time.Minute
	// enrolAgain is how long a failure is repeated before the next call causes another attempt. So
	// waiting calls see how their own attempt ended, and callers do not flood the agent.
	enrolAgain = time.Second
)

// Key prepares the kernel's sealing key from the daemon's SSH key. That may take as long as a
// person needs to touch a key, so it is done in its own goroutine, one at a time, and never in the
// path of a call. The result is kept until the daemon ends.
type Key struct {
	from       access.Identities
	configured bool // crypto.identity names the key
	log        *slog.Logger

	ctx    context.Context // ends the work
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	ready   func() // notifies the calls that wait for it; nil before the first call
	held    *access.Held
	err     error // of the last try
	ended   time.Time
	running bool
	over    chan struct{} // closed when the current attempt has ended
}

// NewKey makes ready the SSH key of a file, "" if the configuration names none, or one of the agent at a socket. It begins at once where the configuration names a key, so that a fault shows at the start. A key of an agent that
// merely is there is left alone until somebody seals or opens: it may ask its user each time.
func NewKey(file, agentSocket string, log *slog.Logger) *Key {
	i := &Key{
		from:       access.Identities{Identity: file, AgentSocket: agentSocket},
		configured: file != "", log: log,
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	if i.configured {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.begin()
	}
	return i
}

// Sealer returns what seals with the daemon's key, see crypto.Identity.
func (i *Key) Sealer() (crypto.Sealer, error) {
	if !i.configured && i.from.AgentSocket == "" {
		return nil, noSealer(fault.CryptoNoKey.New("no encryption key: crypto.identity is not set, and the daemon was started without SSH_AUTH_SOCK"))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.held != nil:
		return i.held, nil
	case i.running:
		return nil, crypto.ErrPending
	case i.err != nil && time.Since(i.ended) < enrolAgain:
		return nil, noSealer(fault.Of(i.err))
	}
	if !i.begin() {
		return nil, fault.KernelStopping.New("the kernel is shutting down")
	}
	return nil, crypto.ErrPending
}

// Await returns what Sealer does once the key is ready, or why ctx ended before. A call must not wait for it.
func (i *Key) Await(ctx context.Context) (crypto.Sealer, error) {
	for {
		sealer, err := i.Sealer()
		if !errors.Is(err, crypto.ErrPending) {
			return sealer, err
		}
		i.mu.Lock()
		over := i.over
		i.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Open opens a sealed value with the kernel's key.
func (i *Key) Open(ctx context.Context, sealed string) (string, error) {
	sealer, err := i.Await(ctx)
	if err != nil {
		return "", err
	}
	text, _, err := sealer.Open(sealed)
	if err != nil {
		return "", err
	}
	defer clear(text)
	return string(text), nil
}

// begin has the key made ready in the background, unless Close was called. i is locked.
func (i *Key) begin() bool {
	if i.ctx.Err() != nil {
		return false
	}
	i.running, i.over = true, make(chan struct{})
	over := i.over
	i.work.Go(func() {
		ctx, cancel := context.WithTimeoutCause(i.ctx, enrolTime,
			fault.AuthAgentSilent.New("the ssh-agent did not answer within %v", enrolTime))
		defer cancel()
		held, err := i.enrol(ctx) // ended by ctx, it says why
		i.mu.Lock()
		i.held, i.err, i.ended, i.running = held, err, time.Now(), false
		ready := i.ready
		i.mu.Unlock()
		close(over)
		if ready != nil {
			ready() // which asks for the Sealer, perhaps on this goroutine
		}
	})
	return true
}

// enrol derives the sealing key of the first key that can seal.
func (i *Key) enrol(ctx context.Context) (*access.Held, error) {
	found, err := i.from.Find(ctx)
	if err != nil {
		i.log.Warn("no sealing key", "error", err)
		return nil, blamed(err)
	}
	var refusals error
	for _, signer := range found.Signers {
		sealer, err := access.Enroll(ctx, signer)
		if err == nil {
			var held *access.Held
			if held, err = sealer.Hold(ctx); err == nil {
				i.log.Info("sealing key ready", "kid", held.KeyID(), "from", signer.Source())
				return held, nil
			}
		}
		refusals = err
		i.log.Warn("key does not seal", "key", signer.Key().Fingerprint(), "error", err)
		if ctx.Err() != nil || !errors.Is(err, fault.CryptoCannot) {
			break // an agent that refuses one key or is silent is not asked for all the others
		}
	}
	return nil, refusals
}

// blamed is the error of there being no key as the agent's, if it did not say which it has: that passes.
func blamed(err error) error {
	for _, id := range []fault.ID{fault.AuthAgentSilent, fault.AuthAgentNo} {
		if errors.Is(err, id) {
			return id.New("%s", err.Error())
		}
	}
	return err
}

// Wake sets what tells the calls that wait. It is not called any more once Close has returned.
func (i *Key) Wake(ready func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ready = ready
}

// Close ends the work and waits for it. It may be called again.
func (i *Key) Close() {
	i.mu.Lock()
	i.cancel() // under the lock, so that no work begins after the wait for it
	i.mu.Unlock()
	i.work.Wait()
}

// noSealer is the error of a call that needs a key if there is none. It is 422, since the caller can correct it, unless the agent
// was asked and failed.
func noSealer(cause *fault.Fault) *fault.Fault {
	id := fault.CryptoNoSealer
	switch cause.Kind {
	case fault.Timeout:
		id = fault.CryptoNotReady
	case fault.Upstream:
		id = fault.AuthAgentNo
	case fault.Unavailable:
		id = fault.KernelStopping
	}
	return id.New("the kernel has no key to seal with: set crypto.identity in its configuration to an ed25519 or rsa key, " +
		"or start it with an ssh-agent that holds one, and restart it").Because(cause)
}
