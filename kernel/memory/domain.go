// Package memory keeps JSON values under keys (PROTOCOL 5, Memory.*).
package memory

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// ErrParameters is returned by New for a parameter block that is no JSON object.
var ErrParameters = errors.New("parameter block is no JSON object")

// Domain is the key-value store. Every origin has a space of keys of its own, and no call sees, counts or guesses at
// another's: all that an answer is made of, cursors included, comes out of the call's own space.
//
// Values are kept as the bytes that were written; they are valid JSON, since the message that brought them was.
type Domain struct {
	kernel.Handlers
	spaces     map[string]*space // by origin; a space without keys is not kept
	parameters schema.Value      // proc/cmdline
	processes  kernel.Processes  // read by what decides alone: what applies must give the same state without it
}

var _ kernel.Domain = (*Domain)(nil)

// New returns an empty store. parameters is the kernel's parameter block, shown as proc/cmdline: a JSON object on one
// line. processes is where proc/<pid>/status comes from.
func New(parameters schema.Value, processes kernel.Processes) (*Domain, error) {
	if !schema.Valid(parameters) || parameters[0] != '{' {
		return nil, fmt.Errorf("make memory: %w", ErrParameters)
	}
	d := &Domain{parameters: parameters, processes: processes}
	d.Handlers = kernel.Bind(schema.Memory,
		kernel.Query(schema.MemoryGet, d.get),
		kernel.Command(schema.MemorySet, d.set, d.applySet),
		kernel.Command(schema.MemoryCompareAndSet, d.compareAndSet, d.applyCompareAndSet),
		kernel.Command(schema.MemoryDelete, d.delete, d.applyDelete),
		kernel.Query(schema.MemoryList, d.list),
	)
	d.Reset()
	return d, nil
}

// Reset empties the store.
func (d *Domain) Reset() { d.spaces = make(map[string]*space) }

// get returns a copy of the value, which its reader may change.
func (d *Domain) get(call *kernel.Call, in *schema.MemoryGetInput) (schema.Value, error) {
	key, err := parseKey(in.Key)
	if err != nil {
		return nil, err
	}
	if inProc(key) {
		return d.readProc(call, key, in.Key)
	}
	value, ok := d.spaces[call.Origin].get(key)
	if !ok {
		return nil, notFound(in.Key)
	}
	return schema.Value(value), nil
}

func (d *Domain) set(_ *kernel.Call, in *schema.MemorySetInput) (ok schema.SuccessOutput, err error) {
	_, err = writable(in.Key, in.Value)
	return schema.SuccessOutput{Success: true}, err
}

func (d *Domain) applySet(e *kernel.Entry, in *schema.MemorySetInput) {
	d.store(e.Origin, in.Key, in.Value)
}

// compareAndSet refuses without showing the value that is there.
func (d *Domain) compareAndSet(call *kernel.Call, in *schema.MemoryCompareAndSetInput) (ok schema.SuccessOutput, err error) {
	key, err := writable(in.Key, in.Value)
	if err != nil {
		return ok, err
	}
	why := ""
	switch value, stored := d.spaces[call.Origin].get(key); {
	case in.Expected == nil && stored:
		why = "is there already: get its value, decide again, and send that as expected"
	case in.Expected != nil && !stored:
		why = "is not there: leave out expected to create it"
	case stored && !same(in.Expected, value):
		why = "has another value than the expected one: get it and decide again"
	}
	if why != "" {
		return ok, fault.MemoryChanged.New("/%s %s", key, why).At("expected").With("key", "/"+key)
	}
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyCompareAndSet(e *kernel.Entry, in *schema.MemoryCompareAndSetInput) {
	d.store(e.Origin, in.Key, in.Value)
}

// store copies what it keeps: the input aliases the connection's line.
func (d *Domain) store(origin, written string, value schema.Value) {
	s := d.spaces[origin]
	if s == nil {
		s = &space{}
		d.spaces[origin] = s
	}
	s.set(trim(written), value)
}

// delete refuses a key that is not there: the caller learns that its key was wrong.
func (d *Domain) delete(call *kernel.Call, in *schema.MemoryDeleteInput) (ok schema.SuccessOutput, err error) {
	key, err := parseKey(in.Key)
	if err != nil {
		return ok, err
	}
	if inProc(key) {
		return ok, readOnly(key)
	}
	if _, stored := d.spaces[call.Origin].get(key); !stored {
		return ok, notFound(in.Key)
	}
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyDelete(e *kernel.Entry, in *schema.MemoryDeleteInput) {
	s := d.spaces[e.Origin]
	if s == nil {
		return
	}
	if s.remove(trim(in.Key)); s.len() == 0 {
		delete(d.spaces, e.Origin)
	}
}

// notFound has the text that MESSAGE 4.2.5 gives, with the key as the caller wrote it, so that it can be found in the message.
func notFound(written string) error {
	return fault.MemoryNotFound.New("Key not found: %s", written).With("key", "/"+trim(written))
}
