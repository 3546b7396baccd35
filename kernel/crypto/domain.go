// Package crypto implements the syscalls of sealed secrets.
package crypto

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// MaxText bounds what is sealed in bytes, including the additional data in the clear: base64 makes 14,600 bytes
	// of it, which fit a line that stores the value (PROTOCOL 2).
	MaxText = 8000
	// MaxAAD bounds the additional data in bytes, as the format does.
	MaxAAD = 1024

	// patience is how long a call waits for the key: long enough for a slow agent, not for a person who has to touch
	// a key.
	patience = 3 * time.Second
)

// Sealer seals and opens with one key. It never blocks, and its errors do not contain plaintext. It draws nonces at
// random, so only Decide calls it: nothing in a replay depends on them.
type Sealer interface {
	// Seal returns another value each time.
	Seal(plaintext, aad []byte) (string, error)
	// Open returns what was sealed, and the additional data.
	Open(value string) (plaintext, aad []byte, err error)
	// KeyID names the key, such as ssh-fp:SHA256:….
	KeyID() string
	// Algorithm names the cipher.
	Algorithm() string
}

// Identity is where the kernel's key comes from.
type Identity interface {
	// Sealer returns the kernel's Sealer, ErrPending while the key is being prepared, or a *fault.Fault that says why
	// there is none. It never blocks: it starts preparing the key if that may help, and later wakes the calls that
	// wait for it.
	Sealer() (Sealer, error)
}

// ErrPending says that the key is being prepared.
var ErrPending = errors.New("the sealing key is being made ready")

// Domain has no state of its own: what it answers follows from the call and the kernel's key.
type Domain struct {
	kernel.Stateless
	kernel.Handlers
	identity Identity
	host     Sealer
}

// New returns the domain of a kernel with the given identity. host seals with its host key; nil: it has none.
func New(identity Identity, host Sealer) *Domain {
	d := &Domain{identity: identity, host: host}
	withKey := ready(d, seal)
	d.Handlers = kernel.Bind(schema.Crypto,
		kernel.Command(schema.CryptoSeal, func(call *kernel.Call, in *schema.SealInput) (out schema.SealOutput, err error) {
			switch {
			case in.Key == nil:
				return withKey(call, in)
			case d.host == nil:
				return out, fault.CryptoNoSealer.New("this kernel has no host key")
			}
			return seal(d.host, in)
		}, nil), // the caller stores what was sealed
		kernel.Query(schema.CryptoOpen, ready(d, open)),
		kernel.Query(schema.CryptoDerive, ready(d, derive)),
	)
	return d
}

// ready parks a call until the kernel's key is ready.
func ready[In, Out any](d *Domain, decide func(Sealer, *In) (Out, error)) func(*kernel.Call, *In) (Out, error) {
	return func(call *kernel.Call, in *In) (out Out, err error) {
		sealer, err := d.identity.Sealer()
		switch {
		case errors.Is(err, ErrPending) && call.Final:
			return out, fault.CryptoNotReady.New("the kernel's sealing key is not ready: its ssh-agent was asked and has not answered yet: touch the key or confirm where it asks for that, and try again")
		case errors.Is(err, ErrPending):
			call.Park(patience)
			return out, nil
		case err != nil:
			return out, err
		}
		return decide(sealer, in)
	}
}

func seal(sealer Sealer, in *schema.SealInput) (out schema.SealOutput, err error) {
	var aad []byte
	if in.AAD != nil {
		aad = []byte(*in.AAD)
	}
	switch {
	case len(aad) > MaxAAD:
		return out, kernel.Invalid("aad", "has %d bytes; it may have at most %d", len(aad), MaxAAD)
	case len(in.Plaintext)+len(aad) > MaxText:
		return out, kernel.Invalid("plaintext", "has %d bytes with its aad, and at most %d are sealed here: seal a key for what is longer, or use \"pwos seal\"",
			len(in.Plaintext)+len(aad), MaxText)
	case !fits(in.Plaintext):
		return out, kernel.Invalid("plaintext", "would not fit a line when it is opened: seal less, or use \"pwos seal\"")
	}
	plaintext := []byte(in.Plaintext)
	defer clear(plaintext)
	value, err := sealer.Seal(plaintext, aad)
	if err != nil {
		return out, fmt.Errorf("seal: %w", err)
	}
	return schema.SealOutput{Value: value, KeyID: sealer.KeyID()}, nil
}

func open(sealer Sealer, in *schema.OpenInput) (out schema.OpenOutput, err error) {
	plaintext, aad, err := sealer.Open(in.Value)
	defer clear(plaintext)
	switch {
	case err != nil:
		return out, fmt.Errorf("open: %w", err)
	case in.AAD != nil && *in.AAD != string(aad):
		return out, badValue("aad", "differs from the value's own: the value was sealed for something else")
	case !utf8.Valid(plaintext):
		return out, badValue("value", "holds data that is not text: open it with \"pwos unseal\"")
	}
	if out.Plaintext = string(plaintext); !fits(out.Plaintext) {
		return schema.OpenOutput{}, badValue("value", "holds more than fits a line: open it with \"pwos unseal\"")
	}
	return out, nil
}

func badValue(field, why string) error {
	return fault.CryptoBadValue.New("Invalid input: %s %s", field, why).At(field)
}

// fits reports whether a plaintext fits the answer of Crypto.Open.
func fits(plaintext string) bool {
	written := schema.AppendString(nil, plaintext)
	defer clear(written)
	return len(written)+len(`{"plaintext":}`) <= kernel.MaxData
}

func derive(sealer Sealer, in *schema.DeriveInput) (out schema.DeriveOutput, err error) {
	if in.KeyID != nil && *in.KeyID != sealer.KeyID() {
		return out, fault.CryptoNoKey.New("the kernel does not seal with that key: it seals with %s", sealer.KeyID())
	}
	return schema.DeriveOutput{KeyID: sealer.KeyID(), Alg: sealer.Algorithm()}, nil
}
