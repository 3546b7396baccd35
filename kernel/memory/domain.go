// Package memory keeps JSON values under keys (PROTOCOL 5, Memory.*).
package memory

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// ErrParameters is returned by New for a parameter block that is no JSON object.
var ErrParameters = errors.New("parameter block is no JSON object")

// Domain is the key-value store. Every origin has a space of keys of its own, and no call sees, counts or guesses at
// another's: all that an answer is made of, cursors included, comes out of the call's own space.
//
// Values are kept as the bytes that were written; they are valid JSON, since the message that brought them was.
type Domain struct {
	spaces     map[string]*space // by origin; a space without keys is not kept
	parameters string            // proc/cmdline
	processes  kernel.Processes  // read in Decide alone: Apply must give the same state without it
}

var _ kernel.Domain = (*Domain)(nil)

// New returns an empty store. parameters is the kernel's parameter block, shown as proc/cmdline: a JSON object on one
// line. processes is where proc/<pid>/status comes from.
func New(parameters schema.Value, processes kernel.Processes) (*Domain, error) {
	if !schema.Valid(parameters) || parameters[0] != '{' {
		return nil, fmt.Errorf("make memory: %w", ErrParameters)
	}
	d := &Domain{parameters: string(parameters), processes: processes}
	d.Reset()
	return d, nil
}

// Reset empties the store.
func (d *Domain) Reset() { d.spaces = make(map[string]*space) }

// Decide answers the syscalls of schema.Memory.
func (d *Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	var data []byte
	var err error
	switch in := call.Input.(type) {
	case *schema.MemoryGetInput:
		data, err = d.get(call, in.Key)
	case *schema.MemorySetInput:
		data, err = set(in)
	case *schema.MemoryDeleteInput:
		data, err = d.remove(call.Origin, in.Key)
	case *schema.MemoryListInput:
		data = d.list(call, in)
	default:
		err = fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
	}
	return kernel.Result{Data: data}, err
}

// Apply stores or removes what a decided Memory.Set or Memory.Delete says. It copies what it keeps: the input aliases the
// connection's line.
func (d *Domain) Apply(call *kernel.Call) {
	switch in := call.Input.(type) {
	case *schema.MemorySetInput:
		s := d.spaces[call.Origin]
		if s == nil {
			s = &space{}
			d.spaces[call.Origin] = s
		}
		s.set(trim(in.Key), in.Value)
	case *schema.MemoryDeleteInput:
		s := d.spaces[call.Origin]
		if s == nil {
			return
		}
		if s.remove(trim(in.Key)); s.len() == 0 {
			delete(d.spaces, call.Origin)
		}
	}
}

// get answers Memory.Get with a copy of the value, which its reader may do with as it likes.
func (d *Domain) get(call *kernel.Call, written string) ([]byte, error) {
	key, err := parseKey(written)
	if err != nil {
		return nil, err
	}
	if inProc(key) {
		return d.readProc(call, key, written)
	}
	value, ok := d.spaces[call.Origin].get(key)
	if !ok {
		return nil, notFound(written)
	}
	return []byte(value), nil
}

// set decides Memory.Set: whatever key and value the rules let through is stored, there is no quota on it.
func set(in *schema.MemorySetInput) ([]byte, error) {
	key, err := parseKey(in.Key)
	if err == nil {
		err = kernel.CheckName("key", key)
	}
	switch {
	case err != nil:
		return nil, err
	case inProc(key):
		return nil, readOnly(key)
	case inVault(key) && !sealed(in.Value):
		return nil, unsealed(key)
	}
	return success(), nil
}

// remove decides Memory.Delete. What is not there cannot be removed: the caller learns that its key was wrong.
func (d *Domain) remove(origin, written string) ([]byte, error) {
	key, err := parseKey(written)
	if err != nil {
		return nil, err
	}
	if inProc(key) {
		return nil, readOnly(key)
	}
	if _, ok := d.spaces[origin].get(key); !ok {
		return nil, notFound(written)
	}
	return success(), nil
}

func success() []byte { return []byte(`{"success":true}`) }

// notFound has the text that MESSAGE 4.2.5 gives, with the key as the caller wrote it: who looks for it in the message finds it.
func notFound(written string) *schema.Error {
	return schema.Errorf(schema.NotFound, "Key not found: %s", written)
}
