package delta

import (
	"sync"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// object is a JSON object. It is immutable: a merge makes a new one that shares the unchanged
// members, so old states need little additional memory. nil is the empty object.
type object = btree.Map[string, node]

// node is a JSON value: an object, or the text of another value as it was written.
type node struct {
	members *object // nil: text is the value
	text    string
}

// merge applies a JSON merge patch (RFC 7386) that is an object: its members replace those of target, null removes
// one, objects are merged recursively.
func merge(target *object, patch []byte) *object {
	merged := &object{}
	if target != nil {
		merged = target.Copy()
	}
	for name, value := range members(patch) { // in any order: the names differ
		switch {
		case value[0] == '{':
			old, _ := merged.Get(name)
			merged.Set(name, node{members: merge(old.members, value)})
		case string(value) == "null":
			merged.Delete(name)
		default:
			merged.Set(name, node{text: string(value)})
		}
	}
	return merged
}

// anyMembers is the schema of an object with unknown members.
var anyMembers = sync.OnceValue(schema.TypeOf[map[string]schema.Value])

// members returns the members of a JSON object as they were written.
func members(text []byte) map[string]schema.Value {
	decoded, err := anyMembers().Decode(text)
	if err != nil {
		panic("delta: members of a patch: " + err.Message) // it was validated before it was stored
	}
	return *decoded.(*map[string]schema.Value)
}

// appendObject appends an object with its members in ascending order. Values stay as they were written: numbers keep
// their digits, strings their escapes.
func appendObject(dst []byte, o *object) []byte {
	dst = append(dst, '{')
	if o != nil {
		o.Scan(func(name string, value node) bool {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(schema.AppendString(dst, name), ':')
			if value.members != nil {
				dst = appendObject(dst, value.members)
			} else {
				dst = append(dst, value.text...)
			}
			return true
		})
	}
	return append(dst, '}')
}
