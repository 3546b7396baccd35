// Package vault opens values that are sealed with the kernel's key.
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
	// enrolAgain is the time for which a failure is returned before a call starts another attempt. Waiting calls thus get
	// the error of their own attempt, and callers do not flood the agent.
	enrolAgain = time.Second
)

// Key prepares the kernel's sealing key from the daemon's SSH key. Since that may take as long as a person needs to
// touch a key, it runs on a goroutine of its own, one at a time, and not in a call. The result is kept until the daemon
// ends.
type Key struct {
	from       access.Identities
	configured bool // whether crypto.identity names the key
	log        *slog.Logger

	ctx    context.Context // ends the work
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	ready   func() // notifies the calls that wait for it; nil before the first call
	held    *access.Held
	err     error // of the last attempt
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

// Sealer returns the Sealer of the daemon's key; see crypto.Identity.
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

// Await waits until the key is ready, and returns what Sealer does, or the cause of ctx's end. A call must not wait for
// it.
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

// begin prepares the key in the background, unless Close was called. i is locked.
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
		held, err := i.enrol(ctx) // the error is the cause of ctx's end, if that ended it
		i.mu.Lock()
		i.held, i.err, i.ended, i.running = held, err, time.Now(), false
		ready := i.ready
		i.mu.Unlock()
		close(over)
		if ready != nil {
			ready() // may call Sealer on this goroutine
		}
	})
	return true
}

// enrol derives the sealing key from the first key that can seal.
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
			break // after a refusal or a timeout, the agent's other keys are not tried
		}
	}
	return nil, refusals
}

// blamed returns the error of a missing key as one of the agent, if that did not list its keys, which is temporary.
func blamed(err error) error {
	for _, id := range []fault.ID{fault.AuthAgentSilent, fault.AuthAgentNo} {
		if errors.Is(err, id) {
			return id.New("%s", err.Error())
		}
	}
	return err
}

// Wake sets the function that notifies waiting calls. It is not called after Close has returned.
func (i *Key) Wake(ready func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ready = ready
}

// Close cancels the preparation and waits for its end. It may be called more than once.
func (i *Key) Close() {
	i.mu.Lock()
	i.cancel() // under the lock, so that no preparation begins after the wait
	i.mu.Unlock()
	i.work.Wait()
}

// noSealer returns the error of a call that needs a key if there is none. The code is 422, since the operator can
// correct it, unless the agent failed.
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
