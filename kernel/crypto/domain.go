// Package crypto gives meaning to the syscalls of sealed secrets.
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
	// MaxText bounds what is sealed, in bytes, with what goes along in the clear: base64 makes 14,600 of them, which fit a
	// line that stores the value (PROTOCOL 2).
	MaxText = 8000
	// MaxAAD bounds what goes along in the clear, in bytes, as the format does.
	MaxAAD = 1024

	// patience is how long a call waits for the key to be made ready: for an agent that is slow, not for a person who looks
	// for the key to touch.
	patience = 3 * time.Second
)

// Sealer seals and opens with one key. It never waits, and its errors say nothing of a plaintext. It draws the nonces of
// what it seals, so it is asked by Decide alone: nothing that is replayed depends on them.
type Sealer interface {
	// Seal returns another value each time.
	Seal(plaintext, aad []byte) (string, error)
	// Open returns what was sealed, with what went along in the clear.
	Open(value string) (plaintext, aad []byte, err error)
	// KeyID names the key, such as ssh-fp:SHA256:….
	KeyID() string
	// Algorithm names the cipher.
	Algorithm() string
}

// Identity is where the kernel's key comes from.
type Identity interface {
	// Sealer returns the kernel's Sealer, ErrPending while it is being made ready, or a *fault.Fault that says why there
	// is none. It never waits: it has the key made ready, where that may help, and wakes the calls that wait for it.
	Sealer() (Sealer, error)
}

// ErrPending says that the key is being made ready.
var ErrPending = errors.New("the sealing key is being made ready")

// Domain has no state of its own: what it answers follows from the call and the kernel's key.
type Domain struct{ identity Identity }

// New returns the domain of a kernel with the given identity.
func New(identity Identity) *Domain { return &Domain{identity: identity} }

// Decide answers the syscalls of schema.Crypto.
func (d *Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	sealer, err := d.identity.Sealer()
	if errors.Is(err, ErrPending) {
		if !call.Final {
			return kernel.Result{Wait: patience}, nil
		}
		err = fault.HTTPTimeout.New("the kernel's sealing key is not ready: its ssh-agent was asked and has not answered yet: touch the key or confirm where it asks for that, and try again")
	}
	if err != nil {
		return kernel.Result{}, err
	}
	switch in := call.Input.(type) {
	case *schema.SealInput:
		return seal(sealer, in)
	case *schema.OpenInput:
		return open(sealer, in)
	case *schema.DeriveInput:
		return derive(sealer, in)
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

func seal(sealer Sealer, in *schema.SealInput) (kernel.Result, error) {
	var aad []byte
	if in.AAD != nil {
		aad = []byte(*in.AAD)
	}
	switch {
	case len(aad) > MaxAAD:
		return kernel.Result{}, kernel.Invalid("aad", "has %d bytes, and at most %d go with a value in the clear", len(aad), MaxAAD)
	case len(in.Plaintext)+len(aad) > MaxText:
		return kernel.Result{}, kernel.Invalid("plaintext", "has %d bytes with its aad, and at most %d are sealed here: seal a key for what is longer, or use \"pwos seal\"",
			len(in.Plaintext)+len(aad), MaxText)
	}
	if _, fault := opened(in.Plaintext); fault != nil {
		return kernel.Result{}, kernel.Invalid("plaintext", "would not fit a line when it is opened: seal less, or use \"pwos seal\"")
	}
	plaintext := []byte(in.Plaintext)
	defer clear(plaintext)
	value, err := sealer.Seal(plaintext, aad)
	if err != nil {
		return kernel.Result{}, fmt.Errorf("seal: %w", err)
	}
	data := schema.AppendString([]byte(`{"value":`), value)
	data = schema.AppendString(append(data, `,"kid":`...), sealer.KeyID())
	return kernel.Result{Data: append(data, '}')}, nil
}

func open(sealer Sealer, in *schema.OpenInput) (kernel.Result, error) {
	plaintext, aad, err := sealer.Open(in.Value)
	defer clear(plaintext)
	switch {
	case err != nil:
		return kernel.Result{}, fmt.Errorf("open: %w", err)
	case in.AAD != nil && *in.AAD != string(aad):
		return kernel.Result{}, kernel.Invalid("aad", "is not what the value was sealed with: it is the value of something else")
	case !utf8.Valid(plaintext):
		return kernel.Result{}, kernel.Invalid("value", "holds what is no text: open it with \"pwos unseal\"")
	}
	data, fault := opened(string(plaintext))
	if fault != nil {
		return kernel.Result{}, fault
	}
	return kernel.Result{Data: data}, nil
}

// opened is what Crypto.Open answers.
func opened(plaintext string) ([]byte, *fault.Fault) {
	data := append(schema.AppendString([]byte(`{"plaintext":`), plaintext), '}')
	if len(data) > kernel.MaxData {
		clear(data)
		return nil, kernel.Invalid("value", "holds more than fits a line: open it with \"pwos unseal\"")
	}
	return data, nil
}

func derive(sealer Sealer, in *schema.DeriveInput) (kernel.Result, error) {
	if in.KeyID != nil && *in.KeyID != sealer.KeyID() {
		return kernel.Result{}, fault.MemoryNotFound.New("the kernel does not seal with that key: it seals with %s", sealer.KeyID())
	}
	data := schema.AppendString([]byte(`{"kid":`), sealer.KeyID())
	data = schema.AppendString(append(data, `,"alg":`...), sealer.Algorithm())
	return kernel.Result{Data: append(data, '}')}, nil
}

// Apply has nothing to change: what was sealed is its caller's to store.
func (*Domain) Apply(*kernel.Call) {}

// Snapshot writes nothing.
func (*Domain) Snapshot() func(write func(chunk []byte) error) error {
	return func(func([]byte) error) error { return nil }
}

// Reset has nothing to forget.
func (*Domain) Reset() {}

// Restore refuses every chunk: none was written.
func (*Domain) Restore([]byte) error { return errors.New("restore crypto domain: it has no state") }
