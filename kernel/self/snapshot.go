package self

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// saved is the chunk of what was registered. What the last start noted is a chunk of its own.
type saved struct {
	Registered []savedOrigin `json:"registered" keep:"always"`
	Recent     []recent      `json:"recent,omitzero" keep:"always"`
}

type savedOrigin struct {
	Origin   string                `json:"origin" keep:"always"`
	Syscalls []schema.Registration `json:"syscalls" keep:"always"`
}

// recent are the times, in milliseconds, of an agent's registrations of the last minute.
type recent struct {
	PID   int64   `json:"pid" keep:"always"`
	Times []int64 `json:"times" keep:"always"`
}

// Snapshot implements kernel.Domain.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	booted, registry := d.booted, d.registry
	return func(write func([]byte) error) error {
		var chunks []any
		if booted != nil {
			chunks = append(chunks, booted)
		}
		if len(registry.origins) > 0 || len(registry.recent) > 0 {
			chunks = append(chunks, registry.saved())
		}
		for _, one := range chunks {
			chunk, err := schema.Marshal(one)
			if err != nil {
				return fmt.Errorf("save kernel domain: %w", err)
			}
			if err := write(chunk); err != nil {
				return err
			}
		}
		return nil
	}
}

// Reset forgets the last start, and what was registered.
func (d *Domain) Reset() { d.booted, d.registry = nil, &registry{} }

// Restore takes back what Snapshot wrote.
func (d *Domain) Restore(chunk []byte) error {
	if !schema.Valid(chunk) {
		return errors.New("restore kernel domain: a chunk is no JSON value")
	}
	if bytes.HasPrefix(chunk, []byte(`{"registered":`)) {
		in, err := schema.TypeOf[saved]().Decode(chunk)
		if err != nil {
			return fmt.Errorf("restore registered syscalls: %w", err)
		}
		d.registry = restored(in.(*saved))
		return nil
	}
	in, err := schema.KernelBooted.Input().Decode(chunk)
	if err != nil {
		return fmt.Errorf("restore kernel domain: %w", err)
	}
	d.booted = in.(*schema.BootedInput)
	return nil
}
