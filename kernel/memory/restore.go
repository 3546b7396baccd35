package memory

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

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
