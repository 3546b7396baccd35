// Package memory keeps JSON values under keys (PROTOCOL 5, Memory.*).
package memory

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// ErrParameters is returned by New for a parameter block that is not a JSON object.
var ErrParameters = errors.New("parameter block is no JSON object")

// Domain is the key-value store. Every origin has its own key space; no call can see, count or infer keys of another
// origin: every part of an answer, cursors included, comes from the call's own space.
//
// Values are kept as the bytes that were written; they are valid JSON, since the message was.
type Domain struct {
	kernel.Handlers
	spaces     map[string]*space // by origin; without empty ones
	parameters schema.Value      // proc/cmdline
	processes  kernel.Processes  // only Decide reads it: Apply must give the same state without it
	recent     kernel.Recent     // likewise
}

var (
	_ kernel.Domain    = (*Domain)(nil)
	_ kernel.Publisher = (*Domain)(nil)
)

// New returns an empty store. parameters is the kernel's parameter block, shown as proc/cmdline: a JSON object on one
// line. proc/<pid>/status comes from processes.
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
		kernel.Step(schema.MemoryRestore, d.decideRestore, d.applyRestore),
	)
	d.Reset()
	return d, nil
}

// Reset empties the store.
func (d *Domain) Reset() {
	d.spaces = make(map[string]*space)
	d.recent.Reset()
}

// get returns a copy of the value, which the caller may change.
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

// compareAndSet refuses without showing the stored value.
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

// store copies key and value: the input aliases the connection's line.
func (d *Domain) store(origin, written string, value schema.Value) {
	s := d.spaces[origin]
	if s == nil {
		s = &space{}
		d.spaces[origin] = s
	}
	s.set(trim(written), value)
	d.recent.Changed(origin, trim(written))
}

// delete refuses a missing key, so that the caller learns of a wrong one.
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
	d.remove(e.Origin, in.Key)
}

func (d *Domain) remove(origin, written string) {
	d.recent.Changed(origin, trim(written))
	s := d.spaces[origin]
	if s == nil {
		return
	}
	if s.remove(trim(written)); s.len() == 0 {
		delete(d.spaces, origin)
	}
}

// notFound has the text of MESSAGE 4.2.5, with the key as the caller wrote it.
func notFound(written string) error {
	return fault.MemoryNotFound.New("Key not found: %s", written).With("key", "/"+trim(written))
}

// same is schema.Same for a value that may be much longer than the expected one: then it does not read all of it.
func same(expected schema.Value, stored string) bool {
	return !outweighs(stored, len(expected)) && schema.Same(expected, schema.Value(stored))
}

// longestEscape is the greatest length of an escape for one byte: \\u0061 is an a.
const longestEscape = 6

// outweighs reports whether a JSON value, without white space, is longer than any value equal to one of so many
// bytes. It stops as soon as that is certain.
func outweighs(value string, length int) bool {
	left, quoted := longestEscape*length, false
	if len(value) <= left {
		return false
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		case c == '"':
			quoted = !quoted
		case c == '\\':
			i++ // only in a string
			left--
		}
		if left--; left < 0 {
			return true
		}
	}
	return false
}

// Value returns a copy of the value stored under a key of an origin, and whether there is one. Only the owner of the
// domain may call it.
func (d *Domain) Value(origin, key string) (schema.Value, bool) {
	value, ok := d.spaces[origin].get(trim(key))
	return schema.Value(value), ok
}

// Keys returns the number of keys in all origins. Only the owner of the domain may call it.
func (d *Domain) Keys() (n int64) {
	for _, s := range d.spaces {
		n += int64(s.len())
	}
	return n
}

// Changes is the number of changes that were sent to the journal so far. It is safe for concurrent use.
func (d *Domain) Changes() int64 { return d.recent.Shown() }

// Publish implements kernel.Publisher.
func (d *Domain) Publish() { d.recent.Publish() }

// decideRestore refuses to undo a change of a key that may have been changed since that was decided.
func (d *Domain) decideRestore(call *kernel.Call, in *schema.MemoryRestoreInput) (ok schema.SuccessOutput, err error) {
	if in.Since != nil && d.recent.Since(*in.Since, call.Origin, trim(in.Key)) {
		return ok, fault.MemoryChanged.New("/%s was changed meanwhile", trim(in.Key)).With("key", "/"+trim(in.Key))
	}
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyRestore(e *kernel.Entry, in *schema.MemoryRestoreInput) {
	if value := in.Restored(); value != nil {
		d.store(e.Origin, in.Key, value)
	} else {
		d.remove(e.Origin, in.Key)
	}
}
